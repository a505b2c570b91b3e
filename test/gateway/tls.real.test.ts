import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { newAuthority, replaceFile } from '../support/certificates';
import { temporaryFolder } from '../support/configuration-folder';
import { freePort } from '../support/free-port';
import { useGateway } from '../support/story';
import { until } from '../support/until';

describe('Two workers with TLS', function () {
  this.timeout(120_000);
  const folder = temporaryFolder({});
  const file = (name: string) => join(folder, name);

  const gateway = useGateway(async () => {
    const { ca, issue } = await newAuthority(folder);
    await issue('used', ['127.0.0.1']);
    const tls = { default: { key: file('used.key'), cert: file('used.pem') } };
    return {
      stores: 'real',
      ca,
      upstreams: { acme: { url: 'http://127.0.0.1:9' } },
      env: { WORKERS: '2', WATCH_CONFIG: 'true', ADMIN_PORT: String(await freePort()) },
      configure: (config) => {
        const { port, hostname } = config['http'];
        delete config['http'];
        config['https'] = { port, hostname, tls };
        config['admin'].tls = tls;
      },
    };
  });

  /** Returns the workers whose log has these words. */
  const workersThatSaid = (words: string) =>
    new Set(
      gateway
        .output()
        .split('\n')
        .filter((line) => line.includes(words))
        .map((line) => JSON.parse(line).worker),
    );

  it('serve calls at one address, and one of them serves the admin API', async () => {
    assert.equal((await gateway.admin('GET', '/admin/v1/accounts')).status, 200);
    const served = await Promise.all(Array.from({ length: 6 }, () => gateway.call('/healthz', { method: 'GET' })));
    assert.deepEqual(new Set(served.map(({ status }) => status)), new Set([200]));
  });

  it('both load changed certificate files, and then present no other certificate', async () => {
    await until('both workers serve', async () => {
      const { json } = await gateway.admin('GET', '/admin/v1/config/status');
      return json.nodes.length === 2;
    });
    // Use another authority, which clients of the first one do not trust.
    const other = temporaryFolder({});
    const { ca, issue } = await newAuthority(other);
    await issue('used', ['127.0.0.1']);
    for (const name of ['used.key', 'used.pem']) await replaceFile(file(name), await readFile(join(other, name)));
    const taken = '"certificates":"https.tls"';
    await until('both have taken them', () => workersThatSaid(taken).size === 2);
    const dispatcher = new Agent({ connect: { ca }, pipelining: 0 });
    const ask = () => request(`${gateway.url}/healthz`, { dispatcher }).then(({ statusCode }) => statusCode);
    const statuses = await Promise.all(Array.from({ length: 8 }, ask));
    assert.deepEqual(new Set(statuses), new Set([200]));
    await dispatcher.destroy();
  });
});
