import assert from 'node:assert/strict';
import { ask, PATH } from '../support/calls';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, respond } from '../support/upstream';

const DOWN = respond({ status: 503, body: {} });
const WHERE = 'region=eu; retention=none; trains=no';
const EU = { region: 'eu', retention: 'none', trains: 'no' };

describe('The report of where calls went', function () {
  this.timeout(120_000);
  const [first, second, us] = [useUpstream(), useUpstream(), useUpstream()];
  const gateway = useGateway(() => ({
    upstreams: {
      first: { url: first.url, tier: 'official', facts: EU },
      second: { url: second.url, facts: EU },
      us: { url: us.url, tier: 'official', facts: { ...EU, region: 'us' } },
    },
  }));
  let key: string;
  let keyId: string;
  let accountId: string;
  beforeEach(async () => {
    for (const upstream of [first, second, us]) {
      upstream.reset();
      upstream.always(messagesAnswer());
    }
    ({ key, keyId, accountId } = await gateway.newCustomer('10'));
  });

  const call = async (status: number) => {
    const answer = await gateway.call(PATH.messages, { key, body: ask() });
    assert.equal(answer.status, status, answer.text);
    const requestId = answer.headers['x-svc-request-id'] ?? '';
    await gateway.record(key, requestId);
    return requestId;
  };
  const report = async (where = WHERE, more = '') => {
    const query = `account=${accountId}&where=${encodeURIComponent(where)}${more}`;
    const answer = await gateway.admin('GET', `/admin/v1/usage/report?${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const demand = (require: string | null) => gateway.admin('PATCH', `/admin/v1/keys/${keyId}`, { require });

  it("counts every request that the upstreams' own logs have, over a failover between regions that is refused", async () => {
    await demand(WHERE);
    await call(200);
    first.always(DOWN);
    await call(200);
    second.always(DOWN);
    await call(502);
    const logged = first.calls.length + second.calls.length;
    assert.equal(us.calls.length, 0);
    assert.ok(logged >= 5, `${logged} requests`);
    const seen = await until('all attempts are written', async () => {
      const found = await report();
      return found.attempts === logged ? found : undefined;
    });
    assert.deepEqual(seen, { holds: true, calls: 3, attempts: logged, unrecorded: 0, outside: [] });
    const refused = await report('region=us');
    assert.deepEqual([refused.holds, refused.outside.length], [false, logged]);
    assert.deepEqual(await report(WHERE, '&to=2026-01-01T00:00:00Z'), {
      ...{ holds: true, calls: 0, attempts: 0, unrecorded: 0, outside: [] },
    });
  });

  it('names each attempt outside with the fact that breaks the demands, also one that only the upstream reports', async () => {
    first.always(DOWN);
    const requestId = await call(200);
    const outside = us.calls.length;
    second.always(messagesAnswer({ rawUsage: { input_tokens: 10, output_tokens: 5, inference_geo: 'global' } }));
    await demand(WHERE);
    const reported = await call(200);
    const found = await until('all attempts are written', async () => {
      const each = await report();
      return each.outside.length === outside + 1 ? each : undefined;
    });
    assert.equal(found.holds, false);
    assert.deepEqual(found.outside.at(-1), { requestId: reported, upstream: 'second', fact: 'region', has: 'global' });
    for (const each of found.outside.slice(0, -1))
      assert.deepEqual(each, { requestId, upstream: 'us', fact: 'region', has: 'us' });
  });

  it('is refused without an account or demands, with wrong ones, and for an account that does not exist', async () => {
    const status = async (query: string) => {
      const answer = await gateway.admin('GET', `/admin/v1/usage/report?${query}`);
      return [answer.status, answer.json.error.param];
    };
    assert.deepEqual(await status(`account=${accountId}`), [400, 'where']);
    assert.deepEqual(await status('where=region%3Deu'), [400, 'account']);
    assert.deepEqual(await status(`account=${accountId}&where=region`), [400, 'where']);
    const nobody = '019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d';
    assert.deepEqual(await status(`account=${nobody}&where=region%3Deu`), [404, null]);
  });
});
