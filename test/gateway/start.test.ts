import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { request } from 'undici';
import { BROKEN_CONFIGURATIONS } from '../support/broken-configurations';
import { ask } from '../support/calls';
import { failToStart, type GatewayOptions, startGateway } from '../support/gateway';
import { builtServer } from '../support/shared';
import { databaseOf, newStores } from '../support/stores';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

describe('The process', function () {
  this.timeout(90_000);
  let upstream: TestUpstream;
  const ends = new Map<string, Awaited<ReturnType<typeof failToStart>>>();
  before(async () => {
    upstream = await startUpstream();
    // Start three processes at a time. None of them opens its stores.
    const stores = await newStores();
    const waiting = broken.values();
    const startThem = async () => {
      for (const [title, options] of waiting) ends.set(title, await failToStart({ upstreams, stores, ...options }));
    };
    await Promise.all([startThem(), startThem(), startThem()]);
  });
  after(() => upstream?.stop());
  beforeEach(() => upstream.reset());

  const upstreams = { acme: { url: 'http://127.0.0.1:9' } };
  const broken: [string, Partial<GatewayOptions>, RegExp][] = [
    ...BROKEN_CONFIGURATIONS.map(({ what, breaks, says }): [string, Partial<GatewayOptions>, RegExp] => [
      what,
      { configure: breaks },
      says,
    ]),
    [
      'only one of the two real stores',
      { env: { REDIS_URL: 'redis://127.0.0.1:1', DATABASE_URL: undefined } },
      /set both, or neither/,
    ],
    ...['gateway.example.com', 'EXAMPLE.com.'].map((domain): [string, Partial<GatewayOptions>, RegExp] => [
      `SANDBOX_DOMAIN=${domain} with the gateway at gateway.example.com`,
      { env: { SANDBOX_DOMAIN: domain, PUBLIC_URL: 'https://gateway.example.com:8443/' } },
      /SANDBOX_DOMAIN .* PUBLIC_URL .*gateway\.example\.com/,
    ]),
    [
      'passwordSignIn: false without an identity provider',
      { plugins: { console: { passwordSignIn: false } } },
      /system\.config\.yml: plugins\.console\.passwordSignIn: .*oidc/,
    ],
  ];
  for (const [title, , message] of broken) {
    it(`exits with code 78 and says what to do for ${title}`, () => {
      const { code, output } = ends.get(title) ?? { code: undefined, output: 'was not started' };
      expect(code, output).to.equal(78);
      expect(output).to.match(message);
      expect(output).not.to.include('secret');
      expect(output).not.to.match(/^\s+at /m);
    });
  }

  it('exits with code 78 if its port is already taken, and names the variable to set', async () => {
    const other = createServer();
    await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
    const address = other.address();
    const port = String(typeof address === 'object' && address !== null ? address.port : 0);
    const { code, output } = await failToStart({ upstreams, env: { PORT: port } });
    other.close();
    expect(code, output).to.equal(78);
    expect(output).to.match(new RegExp(`Port ${port} is already in use.*PORT`));
  });

  it('exits with code 78 if the database is newer than the code, and names both versions', async () => {
    const gateway = await startGateway({ upstreams, own: true });
    await gateway.stop();
    const database = await databaseOf(gateway.stores);
    const later = { name: '2999-01-01-from-the-future', batch: 99, migration_time: new Date() };
    await database('knex_migrations').insert(later);
    await database.destroy();
    const { code, output } = await failToStart({ upstreams, stores: gateway.stores });
    expect(code, output).to.equal(78);
    expect(output).to.include(later.name);
  });

  it('has the same balances and records after a restart', async () => {
    const acme = { acme: { url: upstream.url } };
    upstream.always(messagesAnswer({ usage: { input: 1_000, output: 200 } }));
    const first = await startGateway({ upstreams: acme, own: true });
    const { key } = await first.newCustomer('10', { balanceLimit: '5' });
    const answer = await first.call('/v1/messages', { key, body: ask() });
    expect(answer.status).to.equal(200);
    const before = await first.balance(key);
    expect(await first.stop()).to.equal(0);
    const second = await startGateway({ upstreams: acme, stores: first.stores, dataFolder: first.dataFolder });
    try {
      expect(await second.balance(key)).to.deep.equal(before);
      expect((await second.record(key, answer.headers['x-svc-request-id'] ?? ''))['cost']).to.equal('0.00600000');
      expect((await second.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
      expect((await second.balance(key)).balanceUsd).to.equal('9.98800000');
    } finally {
      await second.stop();
    }
  });

  it('shows its metrics only with the admin token', async () => {
    const gateway = await startGateway({ upstreams, own: true });
    try {
      const shown = await gateway.admin('GET', '/metrics');
      expect(shown.status).to.equal(200);
      expect(shown.headers['content-type']).to.match(/^text\/plain/);
      expect(shown.text).to.match(/^process_cpu_seconds_total \d/m);
      const { statusCode } = await request(`${gateway.adminUrl}/metrics`);
      expect(statusCode).to.equal(401);
      expect((await gateway.call('/metrics', { method: 'GET' })).status).to.equal(404);
    } finally {
      await gateway.stop();
    }
  });

  it('reports with --check that the configuration is valid and which upstreams are disabled, and serves no calls', async () => {
    const env = { PATH: process.env['PATH'] };
    const { stdout } = await promisify(execFile)(process.execPath, [await builtServer(), '--check'], { env });
    expect(stdout).to.match(/"openai" is disabled: OPENAI_API_KEY is not set \(warning\)$/m);
    expect(stdout).to.match(/is valid \(revision [0-9a-f]{12}\)\.\n$/);
  });
});
