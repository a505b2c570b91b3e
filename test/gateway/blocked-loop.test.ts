import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { parse } from 'yaml';
import { temporaryFolder } from '../support/configuration-folder';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { builtServer } from '../support/shared';
import { textOf } from '../support/sources';
import { until } from '../support/until';
import { chatAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const BLOCK = `
const blockFor = (ms) => { for (const end = Date.now() + ms; Date.now() < end; ); };
const blockForEver = () => { for (;;); };
`;

/** A plugin whose routes block after they have waited, and an adapter that blocks in \`request\`. */
const PLUGIN = (dist: string) => `
const chat = require('${dist}/plugins/upstreams/chat.js').default;
const { registerAdapter } = require('${dist}/exports/upstream.js');
const { definePlugin } = require('${dist}/exports/plugin.js');
const { pluginManifest } = require('${dist}/exports/manifest.js');
${BLOCK}
const route = (path, work) => ({
  listener: 'public', auth: 'none', method: 'GET', path, summary: 'Blocks.', answers: { 200: { description: 'Late.' } },
  handle: async (_visit, _request, response) => {
    await null;
    work();
    response.end();
  },
});
module.exports = pluginManifest(definePlugin({
  contract: 'plugin/1',
  name: 'blocking',
  summary: 'Blocks.',
  schema: { type: 'object', properties: {} },
  register: () => void registerAdapter({
    ...chat,
    name: 'blocking-adapter',
    request: (...given) => { blockFor(2_000); return chat.request(...given); },
  }),
  routes: () => [route('/v1/block', () => blockFor(3_000)), route('/v1/block-for-ever', blockForEver)],
}));
`;

const POLICY = (dist: string) => `
const { definePolicy } = require('${dist}/exports/policy.js');
const { policiesManifest } = require('${dist}/exports/manifest.js');
${BLOCK}
module.exports = policiesManifest('slow-policies', [definePolicy({
  contract: 'policy/1',
  name: 'blocking-policy',
  summary: 'Blocks.',
  schema: { type: 'object', properties: {} },
  needs: [],
  provides: [],
  prepare: () => () => blockFor(2_000),
})]);
`;

interface Told {
  readonly msg: string;
  readonly level: number;
  readonly by?: string;
  readonly blockedMs: number;
  readonly at?: readonly string[];
}

describe('A blocked event loop', () => {
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;
  /** The length of the output before the test. */
  let begin = 0;
  /** The sum of the logged seconds, by owner. */
  const blockedSeconds: Record<string, number> = {};

  before(async () => {
    upstream = await startUpstream();
    upstream.always(chatAnswer());
    const dist = dirname(await builtServer());
    const plugin = temporaryFolder({ 'index.js': PLUGIN(dist) });
    const policy = temporaryFolder({ 'index.js': POLICY(dist) });
    const { plugins } = parse(textOf('system.config.yml'));
    gateway = await startGateway({
      upstreams: {
        sound: { url: upstream.url, adapter: 'chat' },
        blocked: { url: upstream.url, adapter: 'blocking-adapter', models: { slow: {} } },
      },
      configure: (config) => {
        config['policies'].push('blocking-policy');
        config['pipelines'].cost.policies.unshift({ 'blocking-policy': null });
      },
      system: {
        plugins: {
          ...plugins,
          blocking: { package: join(plugin, 'index.js') },
          'slow-policies': { package: join(policy, 'index.js') },
        },
      },
    });
    key = (await gateway.newCustomer('1')).key;
  });

  beforeEach(() => {
    begin = gateway.output().length;
  });

  after(async () => {
    await gateway?.kill();
    await upstream?.stop();
  });

  const told = (): Told[] =>
    gateway
      .output()
      .slice(begin)
      .split('\n')
      .filter((line) => line.includes('the event loop'))
      .map((line) => JSON.parse(line));

  async function expectTold(by: string, seconds: number): Promise<void> {
    const ofOwner = () => told().filter((each) => each.by === by);
    const ended = await until('the end is logged', () => ofOwner().find(({ msg }) => msg.includes('was blocked')));
    expect(ended.level).to.equal(40);
    // Time in which the whole machine stood still is not counted.
    expect(ended.blockedMs).to.be.within(seconds * 400, seconds * 5_000);
    expect(ofOwner()[0]?.level).to.equal(50);
    const { text } = await gateway.admin('GET', '/metrics');
    blockedSeconds[by] = (blockedSeconds[by] ?? 0) + ended.blockedMs / 1_000;
    const counted = text.split(`tollgate_event_loop_blocked_seconds_total{by="${by}"} `)[1];
    expect(Number.parseFloat(counted ?? '')).to.be.closeTo(blockedSeconds[by], 1e-6);
  }

  const chat = (path: string, model: string) =>
    gateway.call(path, { key, body: { model, messages: [{ role: 'user', content: 'hello' }] } });

  for (const [what, by, block] of [
    ['an adapter', 'adapter blocking-adapter', () => chat('/v1/chat/completions', 'slow')],
    ['a policy', 'policy blocking-policy', () => chat('/cost/v1/chat/completions', MODEL)],
  ] as const) {
    it(`is logged with the name of ${what} that blocks it for 2 s, and with the duration`, async () => {
      const answer = await block();
      expect(answer.status, answer.text).to.equal(200);
      await expectTold(by, 2);
    });
  }

  it('is logged with the name of a policy that blocks it at the first request after 6 s without requests', async () => {
    await sleep(6_000);
    const answer = await chat('/cost/v1/chat/completions', MODEL);
    expect(answer.status, answer.text).to.equal(200);
    await expectTold('policy blocking-policy', 2);
  });

  it('is logged with the name, file and line of a plugin that blocks it for 3 s after an await', async () => {
    expect((await gateway.call('/v1/block', { method: 'GET' })).status).to.equal(200);
    await expectTold('plugin blocking', 3);
    expect(
      told()
        .map(({ at }) => at?.[0])
        .join(),
    ).to.match(/blockFor \(.*index\.js:\d+\)/);
  });

  it('is not reported if the whole process was suspended', async () => {
    const stoppedMs = 2_000;
    gateway.process.kill('SIGSTOP');
    await sleep(stoppedMs);
    gateway.process.kill('SIGCONT');
    // A real block is still reported afterwards.
    expect((await gateway.call('/v1/block', { method: 'GET' })).status).to.equal(200);
    const isEnd = ({ by, msg }: Told) => by === 'plugin blocking' && msg.includes('was blocked');
    await until('the end is logged', () => told().some(isEnd));
    // A busy machine may stop the process too, but for shorter times.
    const others = told().filter(({ by, blockedMs }) => by !== 'plugin blocking' && blockedMs >= stoppedMs / 2);
    expect(others).to.deep.equal([]);
  });

  // Keep this test last, because it makes the gateway unusable.
  it('is logged repeatedly, with the name of the plugin, as long as it is blocked', async () => {
    gateway.call('/v1/block-for-ever', { method: 'GET' }).catch(() => undefined);
    await until('it is logged twice', () => told().length >= 2);
    const [first, second] = told();
    expect(first).to.include({ by: 'plugin blocking' });
    expect(second?.blockedMs).to.be.above(first?.blockedMs ?? 0);
    expect(second?.at?.[0]).to.match(/^blockForEver \(.*index\.js:\d+\)$/);
  });
});
