import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { ask } from '../support/calls';
import { runTollgate } from '../support/command-line';
import { temporaryFolder } from '../support/databases';
import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway';
import { textOf } from '../support/sources';
import { newStores } from '../support/stores';
import { until } from '../support/until';
import { messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

const FAULTY = `
const { definePlugin } = require('tollgate/plugin');
const { pluginManifest } = require('tollgate/manifest');

const faults = {
  throw: () => setTimeout(() => { throw new Error('thrown in a timer'); }),
  reject: () => void Promise.reject(new Error('rejected and not caught')),
};

module.exports = pluginManifest(definePlugin({
  contract: 'plugin/1',
  name: 'faulty',
  summary: 'Fails when it is asked to.',
  schema: { type: 'object', properties: {} },
  routes: () => Object.entries(faults).map(([name, fault]) => ({
    listener: 'public', auth: 'none', method: 'GET', path: '/faulty/' + name, summary: 'Fails.',
    answers: { 204: { description: 'It will fail.' } }, errors: [],
    handle: async (_visit, _request, response) => { fault(); response.writeHead(204).end(); },
  })),
}));
`;

describe('An uncaught exception', function () {
  this.timeout(120_000);
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let options: GatewayOptions;
  let key: string;

  before(async () => {
    folder = await temporaryFolder();
    await runTollgate(['plugin', 'new', 'plugin', 'faulty'], { TOLLGATE_CONFIG_DIR: folder.path });
    await writeFile(join(folder.path, 'faulty/index.js'), FAULTY);
    upstream = await startUpstream();
  });
  after(async () => {
    await upstream?.stop();
    await folder?.remove();
  });

  const start = async (shutdownGrace: string) => {
    upstream.reset();
    const plugins = { ...parse(textOf('system.config.yml')).plugins, faulty: { package: join(folder.path, 'faulty') } };
    options = {
      stores: await newStores(),
      upstreams: { acme: { url: upstream.url } },
      system: { plugins, shutdownGrace },
    };
    gateway = await startGateway(options);
    ({ key } = await gateway.newCustomer('10'));
  };
  afterEach(() => gateway?.stop());

  /** Begins a stream that continues as long as the test lets it. */
  const beginStream = async (texts: number, delayMs: number) => {
    upstream.next(messagesStream({ texts: Array.from({ length: texts }, () => 'word '), delayMs }));
    const answer = gateway.call('/v1/messages', { key, body: ask({ stream: true }) });
    await upstream.call(1);
    return answer.then(({ text }) => text);
  };

  const fail = (how: string) => gateway.call(`/faulty/${how}`, { method: 'GET' });

  for (const [how, origin, message] of [
    ['throw', 'uncaughtException', 'thrown in a timer'],
    ['reject', 'unhandledRejection', 'rejected and not caught'],
  ] as const) {
    it(`lets running calls finish, refuses new ones and ends the process with exit code 1 (${origin})`, async () => {
      await start('60s');
      const running = beginStream(40, 50);
      await upstream.call(1);
      await fail(how);
      await until(
        'it is not ready any more',
        async () => (await gateway.call('/readyz', { method: 'GET' })).status === 503,
      );
      const refused = await gateway.call('/v1/messages', { key, body: ask() });
      expect([refused.status, refused.json.error.code]).to.deep.equal([503, 'DRAINING']);
      expect(await running)
        .to.include('message_stop')
        .and.not.include('event: error');
      expect(await gateway.ended).to.equal(1);
      const lines = gateway
        .output()
        .split('\n')
        .filter((line) => line.includes('"level":60'));
      expect(lines).to.have.length(1);
      const { error, origin: logged } = JSON.parse(lines[0] ?? '');
      expect([logged, error.message]).to.deep.equal([origin, message]);
      expect(error.where.join('\n')).to.include('faulty/index.js');
    });
  }

  it('leaves the calls that it interrupts free of charge', async () => {
    await start('500ms');
    const running = beginStream(10_000, 20);
    await upstream.call(1);
    await fail('throw');
    expect(await running).to.include('"code":"DRAINING"');
    expect(await gateway.ended).to.equal(1);
    const next = await startGateway(options);
    try {
      const balance = await next.balance(key);
      expect(balance).to.include({ balanceUsd: '10.00000000', heldUsd: '0.00000000' });
    } finally {
      await next.stop();
    }
  });

  it('ends the process at once if it is the second one', async () => {
    await start('10m');
    const running = beginStream(10_000, 20).catch(() => 'broken off');
    await upstream.call(1);
    await fail('throw');
    await until(
      'it is not ready any more',
      async () => (await gateway.call('/readyz', { method: 'GET' })).status === 503,
    );
    await fail('reject').catch(() => undefined);
    expect(await gateway.ended).to.equal(1);
    expect(await running).to.not.include('message_stop');
  });
});
