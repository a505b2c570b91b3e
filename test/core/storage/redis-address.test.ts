import assert from 'node:assert/strict';
import { StartFailure } from '../../../core/base/start-failure';
import { parseRedisUrl } from '../../../core/storage/redis-address';

describe('REDIS_URL', () => {
  const none = { tls: false, username: undefined, password: undefined };

  it('can name a single Redis server', () => {
    for (const url of ['redis://127.0.0.1:6379/2', 'rediss://user:word@redis.example'])
      assert.deepEqual(parseRedisUrl(url), { kind: 'single', url });
  });

  it('can name some nodes of a Redis Cluster, from which the client discovers the other nodes', () => {
    assert.deepEqual(parseRedisUrl('redis+cluster://one:7000,two,[::1]:7002'), {
      kind: 'cluster',
      ...none,
      nodes: [
        { host: 'one', port: 7000 },
        { host: 'two', port: 6379 },
        { host: '::1', port: 7002 },
      ],
    });
  });

  it('can name the sentinels of a master', () => {
    assert.deepEqual(parseRedisUrl('rediss+sentinel://gate:a%3Ab@one,two:26380/mymaster?sentinelPassword=s'), {
      kind: 'sentinel',
      tls: true,
      username: 'gate',
      password: 'a:b',
      sentinelPassword: 's',
      master: 'mymaster',
      nodes: [
        { host: 'one', port: 26_379 },
        { host: 'two', port: 26_380 },
      ],
    });
  });

  for (const [url, expected] of [
    ['localhost:6379', /begins with no scheme.*redis:\/\//],
    ['http://localhost', /begins with http:\/\//],
    ['redis+cluster://', /"" is not a host with a port/],
    ['redis+cluster://one:99999', /"one:99999" is not a host with a port/],
    ['redis+cluster://one:7000/3', /a Cluster has one database/],
    ['redis+sentinel://one,two', /the name of the master/],
    ['redis+sentinel://one/main?role=slave', /unknown parameter "role"/],
    ['redis://:bad port', /is not a URL/],
  ] as const) {
    it(`is refused with an explanation if it is "${url}"`, () => {
      assert.throws(
        () => parseRedisUrl(url),
        (error) => error instanceof StartFailure && expected.test(error.message),
      );
    });
  }

  it('is never logged or shown with its password', () => {
    for (const url of ['redis+cluster://user:secret-word@one:x', 'tcp://user:secret-word@one'])
      assert.throws(
        () => parseRedisUrl(url),
        (error: Error) => !error.message.includes('secret-word'),
      );
  });
});
