import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import knex from 'knex';
import { request } from 'undici';
import { ask } from '../support/calls';
import { freePort } from '../support/free-port';
import { type Configured, isRunning, MODEL, PRICE, startGateway, type TestGateway } from '../support/gateway';
import { emptyRedis, newDatabase } from '../support/shared';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, messagesFailure, type Script, startUpstream, type TestUpstream } from '../support/upstream';

const USAGE = { input: 1_000, output: 200 };
const BETA = { upstreams: { model: MODEL, add: ['beta'] } };
const LONG = '1h';

describe('Rollouts on two nodes', function () {
  this.timeout(120_000);
  let acme: TestUpstream;
  let beta: TestUpstream;
  let nodes: readonly [TestGateway, TestGateway];
  let key: string;
  let accountId: string;
  let stores: { redisUrl: string; databaseUrl: string };
  let count = 0;

  const start = () =>
    startGateway({
      stores,
      upstreams: {
        acme: { url: acme.url, models: { [MODEL]: { aliases: ['newest'] }, 'acme-next': {} } },
        beta: { url: beta.url },
        dear: { url: beta.url, models: { [MODEL]: { price: { ...PRICE, input: 6, output: 30 } } } },
      },
      configure: (config) => void configureIdle(config),
    });
  before(async () => {
    [acme, beta] = await Promise.all([startUpstream(), startUpstream()]);
    stores = { redisUrl: await emptyRedis(), databaseUrl: await newDatabase() };
    nodes = [await start(), await start()];
    ({ key, accountId } = await nodes[0].newCustomer('1000'));
  });
  after(async () => {
    await Promise.all([...(nodes ?? [])].map((node) => node.stop()));
    await Promise.all([acme, beta].map((upstream) => upstream?.stop()));
  });
  beforeEach(async () => {
    if (!isRunning(nodes[0].process)) nodes = [await start(), nodes[1]];
    for (const upstream of [acme, beta]) {
      upstream.reset();
      upstream.always(messagesAnswer({ usage: USAGE }));
    }
  });

  /** Configures acme as the only upstream that is asked without a rollout. */
  function configureIdle(config: Configured): void {
    for (const name of ['quality', 'speed', 'cost'])
      config['pipelines'][name].policies[2]['strategy-routing'][0].action.upstreams = ['acme', 'beta'];
  }

  /** Adds a rollout with a new name to the configuration of both nodes, and waits until both have begun it. */
  async function begin(rollout: object): Promise<string> {
    count += 1;
    const name = `rollout-${count}`;
    for (const node of nodes) {
      await node.changeConfiguration((config) => {
        config['rollouts'] = { [name]: rollout };
        const { policies } = config['pipelines'].quality;
        const wantsDear = JSON.stringify(rollout).includes('dear');
        policies[2]['strategy-routing'][0].action.upstreams = wantsDear ? ['acme', 'dear'] : ['acme', 'beta'];
      });
      expect((await node.admin('POST', '/admin/v1/config/reload')).status).to.equal(200);
    }
    await follow(name, 'running', 1);
    return name;
  }

  const shown = async (name: string, node = nodes[1]) => (await node.admin('GET', `/admin/v1/rollouts/${name}`)).json;

  /** Waits until both nodes serve with this status and stage. */
  const follow = (name: string, status: string, stage: number) =>
    Promise.all(
      nodes.map((node) =>
        until(`${name} is ${status} at stage ${stage}`, async () => {
          const { text } = await node.admin('GET', '/metrics');
          const has = (line: string) => text.includes(line);
          return (
            has(`tollgate_rollout_status{rollout="${name}",status="${status}"} 1`) &&
            has(`tollgate_rollout_stage{rollout="${name}"} ${stage}`)
          );
        }),
      ),
    );

  const call = (node: TestGateway, by = key, body: Record<string, unknown> = {}) =>
    node.call('/v1/messages', { key: by, body: ask(body) });

  /** Sends a call, and repeats it if its reserve was late because the machine is busy. Then no upstream was asked. */
  const served = (node: TestGateway, by = key) =>
    until('it is served', async () => {
      const answer = await call(node, by);
      return answer.status === 200 ? answer : undefined;
    });

  /** Sends calls to both nodes, a few at a time, until the condition holds. */
  async function load(done: () => Promise<boolean>, body: Record<string, unknown> = {}): Promise<void> {
    let calls = 0;
    for (;;) {
      for (let round = 0; round < 5; round += 1) {
        await Promise.all(Array.from({ length: 8 }, (_, index) => call(nodes[index % 2 ? 1 : 0], key, body)));
        calls += 8;
      }
      if (await done()) return;
      if (calls > 20_000) throw new Error(`nothing has come of ${calls} calls`);
    }
  }

  const hasStatus = (name: string, status: string) => async () => (await shown(name)).status === status;
  const auditOf = async (name: string) =>
    (await nodes[0].admin('GET', `/admin/v1/audit?subject=rollout:${name}`)).json.items.map(
      ({ action }: { action: string }) => action,
    );

  it('give the treatment its share of the calls, count every call, and name the group in every record', async () => {
    const name = await begin({ change: BETA, stickyBy: 'request', stages: [{ share: 30, hold: LONG }] });
    const calls = 2_000;
    let answered = 0;
    for (let done = 0; done < calls; done += 20) {
      const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => call(nodes[index % 2 ? 1 : 0])));
      // A reserve may be late because the machine is busy.
      answered += answers.filter(({ status }) => status === 200).length;
    }
    const deviation = 6 * Math.sqrt(calls * 0.3 * 0.7);
    expect(beta.calls.length).to.be.within(answered * 0.3 - deviation, answered * 0.3 + deviation);
    expect(beta.calls.length + acme.calls.length).to.equal(answered);
    await until('all are counted', async () => {
      const { control, treatment } = (await shown(name)).inStage;
      return control.calls === acme.calls.length && treatment.calls === beta.calls.length;
    });
    const { items } = (await nodes[0].admin('GET', '/admin/v1/usage?limit=200')).json;
    for (const { rollout, rolloutStage, rolloutGroup, upstream, status } of items) {
      if (status !== 200) continue;
      expect([rollout, rolloutStage]).to.deep.equal([name, 1]);
      expect(rolloutGroup).to.equal(upstream === 'beta' ? 'treatment' : 'control');
    }
    expect(new Set(items.map(({ rolloutGroup }: { rolloutGroup: string }) => rolloutGroup)).size).to.equal(2);
  });

  it('keep a caller in one group for every call on every node, and follow `include` and `exclude`', async () => {
    const customers = await Promise.all(Array.from({ length: 24 }, () => nodes[0].newCustomer('1')));
    const [friend, shy] = customers;
    await begin({
      change: BETA,
      stages: [{ share: 50, hold: LONG }],
      include: [friend?.accountId],
      exclude: [shy?.keyId],
    });
    const servedBy = await Promise.all(
      customers.map(async (customer) => {
        const answers = await Promise.all([0, 1, 0, 1, 0, 1].map((node) => served(nodes[node ? 1 : 0], customer.key)));
        return [...new Set(answers.map(({ headers }) => headers['x-routing-provider']))];
      }),
    );
    for (const each of servedBy) expect(each).to.have.length(1);
    expect(new Set(servedBy.flat())).to.deep.equal(new Set(['acme', 'beta']));
    expect([servedBy[0], servedBy[1]]).to.deep.equal([['beta'], ['acme']]);
  });

  it('roll back an upstream that fails 5 % of its calls, and no caller sees an error, because another upstream answers', async () => {
    const guards = { errorRate: { minCalls: 20 } };
    const stages = [{ share: 50, hold: LONG }];
    const name = await begin({ change: BETA, stickyBy: 'request', stages, guards });
    beta.always(sometimes(messagesFailure(500), 20));
    await load(hasStatus(name, 'rolled-back'));
    const { reason, inAll } = await shown(name);
    expect(reason).to.match(/^errorRate: \d+ of \d+ calls failed/);
    expect(inAll.treatment.callersHurt).to.equal(0);
    expect(inAll.treatment.errors).to.be.below(150);
    expect(await auditOf(name)).to.deep.equal(['rollout.abort', 'rollout.begin']);
    await follow(name, 'rolled-back', 1);
    const before = beta.calls.length;
    for (const node of nodes) for (let times = 0; times < 20; times += 1) await call(node);
    expect(beta.calls.length).to.equal(before);
  });

  it('with `onAbort: hold` stop at the stage at which the treatment costs too much', async () => {
    const guards = { costRatio: { times: 1.1, minCalls: 20 } };
    const change = { upstreams: { model: MODEL, add: ['dear'] } };
    const name = await begin({
      change,
      stickyBy: 'request',
      stages: [{ share: 50, hold: LONG }],
      guards,
      onAbort: 'hold',
    });
    await load(hasStatus(name, 'held'));
    const { reason, share } = await shown(name);
    expect(reason).to.match(/^costRatio: (\d+) of \1 calls cost more than 0\.006\d+ USD/);
    expect(share).to.equal(50);
    const resumed = await nodes[0].admin('POST', `/admin/v1/rollouts/${name}/rollback`, { reason: 'too dear' });
    expect(resumed.json).to.include({ status: 'rolled-back', share: 0, reason: 'too dear' });
  });

  it('advance a treatment that is as good as the control through all stages to all callers', async () => {
    const guards = { errorRate: { minCalls: 20 }, costRatio: { minCalls: 20 } };
    const stages = [
      { share: 20, hold: '500ms' },
      { share: 60, hold: '500ms' },
      { share: 100, hold: '500ms' },
    ];
    const name = await begin({ change: BETA, stickyBy: 'request', stages, guards });
    await load(hasStatus(name, 'completed'));
    await follow(name, 'completed', 3);
    acme.reset();
    for (const node of nodes) expect((await served(node)).headers['x-routing-provider']).to.equal('beta');
    expect(await auditOf(name)).to.deep.equal([
      'rollout.complete',
      'rollout.advance',
      'rollout.advance',
      'rollout.begin',
    ]);
  });

  it("apply an operator's command on all nodes within a second, and a rollback already to the next call", async () => {
    const stages = [
      { share: 0, hold: LONG },
      { share: 100, hold: LONG },
    ];
    const name = await begin({ change: BETA, stages });
    const order = (what: string, node = nodes[0]) => node.admin('POST', `/admin/v1/rollouts/${name}/${what}`, {});
    const provider = async (node: TestGateway) => (await served(node)).headers['x-routing-provider'];
    expect((await order('promote')).json).to.include({ status: 'running', stage: 2, share: 100 });
    expect(await provider(nodes[0])).to.equal('beta');
    await until('the other node follows', async () => (await provider(nodes[1])) === 'beta', 1_000);
    expect((await order('pause')).json).to.include({ status: 'paused', stageEndsAt: null });
    expect((await order('pause')).status).to.equal(409);
    expect((await order('resume')).json.status).to.equal('running');
    expect((await order('rollback')).json).to.include({ status: 'rolled-back', share: 0 });
    expect(await provider(nodes[0])).to.equal('acme');
    await until('the other node follows', async () => (await provider(nodes[1])) === 'acme');
    expect((await order('promote')).status).to.equal(409);
    expect((await order('resume')).json).to.include({ status: 'running', stage: 1 });
    expect((await nodes[0].admin('POST', '/admin/v1/rollouts/none/pause', {})).status).to.equal(404);
    expect((await auditOf(name)).slice(-5)).to.deep.equal([
      'rollout.rollback',
      'rollout.resume',
      'rollout.pause',
      'rollout.promote',
      'rollout.begin',
    ]);
  });

  it('can point an alias to another model, for callers that use the alias', async () => {
    const change = { version: { alias: 'newest', model: 'acme-next' } };
    await begin({ change, stages: [{ share: 0, hold: LONG }], include: [accountId] });
    await call(nodes[0], key, { model: 'newest' });
    await call(nodes[0], key, { model: MODEL });
    const asked = [...acme.calls, ...beta.calls].map(({ json }) => (json as { model: string }).model);
    expect(asked).to.deep.equal(['acme-next', MODEL]);
    const listed = await nodes[0].newCustomer('1', { allowedModels: [MODEL] });
    await begin({ change, stages: [{ share: 100, hold: LONG }] });
    expect((await call(nodes[0], listed.key, { model: 'newest' })).status).to.equal(200);
    expect((acme.calls.at(-1)?.json as { model?: string } | undefined)?.model).to.equal('acme-next');
    expect((await call(nodes[0], listed.key, { model: 'acme-next' })).status).to.equal(400);
  });

  it('send shadow calls to the new upstream, which callers neither wait for nor pay', async () => {
    const name = await begin({ change: BETA, stages: [{ share: 0, hold: LONG }], shadow: 100 });
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((done) => {
      letGo = done;
    });
    const dear = messagesAnswer({ usage: { input: 5_000, output: 1_000 } });
    beta.always({ answer: (exchange) => held.then(() => dear.answer(exchange)) });
    const { balanceUsd: before } = await nodes[0].balance(key);
    const answer = await call(nodes[0]);
    letGo();
    expect(answer.headers).to.include({ 'x-routing-provider': 'acme', 'x-ai-cost': '0.00600000' });
    expect((await beta.call(1)).body).to.deep.equal(acme.calls[0]?.body);
    const { shadow } = await until('it is counted', async () => {
      const { inAll } = await shown(name);
      return inAll.shadow.calls === 1 ? inAll : undefined;
    });
    expect(shadow).to.include({ errors: 0, costUsd: '0.03000000' });
    const { balanceUsd } = await nodes[0].balance(key);
    expect((Number(before) - Number(balanceUsd)).toFixed(8)).to.equal('0.00600000');
    const requestId = answer.headers['x-svc-request-id'] ?? '';
    const mirror = await until('the row of the mirror is there', async () => {
      const { json } = await nodes[0].admin('GET', `/admin/v1/usage/${requestId}/attempts`);
      return json.items?.find((each: { number: number }) => each.number === 0);
    });
    expect(mirror).to.include({ cause: 'mirror', upstream: 'beta', isReported: true, upstreamCost: '0.03000000' });
    const upstreams = (await nodes[0].admin('GET', '/admin/v1/upstreams')).json.items;
    expect(upstreams.find((each: { name: string }) => each.name === 'beta').successRate).to.equal(1);
    beta.always(messagesFailure(500));
    for (let times = 0; times < 6; times += 1) expect((await call(nodes[0])).status).to.equal(200);
    await until('failures are counted', async () => (await shown(name)).inAll.shadow.errors === 6);
    const { items } = (await nodes[0].admin('GET', '/admin/v1/upstreams')).json;
    expect(items.find((each: { name: string }) => each.name === 'beta')).to.include({ ejectedUntil: null });
  });

  it("let a new node serve calls only after that node has read the rollouts' stages", async () => {
    const stages = [
      { share: 0, hold: LONG },
      { share: 100, hold: LONG },
    ];
    const name = await begin({ change: BETA, stages });
    expect((await nodes[0].admin('POST', `/admin/v1/rollouts/${name}/promote`, {})).status).to.equal(200);
    const configured = await readFile(join(nodes[1].configFolder, 'gateway.config.yml'), 'utf8');
    const port = await freePort();
    const database = knex({ client: 'pg', connection: stores.databaseUrl, pool: { min: 0, max: 2 } });
    const reading = await database.transaction();
    let third: TestGateway | undefined;
    try {
      await reading.raw('LOCK TABLE rollouts IN ACCESS EXCLUSIVE MODE');
      const started = startGateway({
        stores,
        upstreams: { acme: { url: acme.url } },
        env: { PORT: String(port) },
        configure: () => configured,
      });
      await until('all three want to know', async () => {
        const { rows } = await database.raw(
          // A process waits for the table, or for its turn behind a node that waits for it.
          `SELECT count(DISTINCT pid)::int AS waiting FROM pg_locks JOIN pg_database ON pg_database.oid = database
            WHERE (relation = 'rollouts'::regclass OR locktype = 'advisory') AND NOT granted AND datname = current_database()`,
        );
        return rows[0].waiting >= 3;
      });
      const early = await request(`http://127.0.0.1:${port}/healthz`).then(
        () => 'served',
        ({ code }: { code?: string }) => code,
      );
      expect(early).to.equal('ECONNREFUSED');
      await reading.rollback();
      third = await started;
      expect((await call(third)).headers['x-routing-provider']).to.equal('beta');
    } finally {
      if (!reading.isCompleted()) await reading.rollback();
      await database.destroy();
      await third?.stop();
    }
  });

  it('accept an additional stage by a configuration reload while they run, and every caller stays in the same group', async () => {
    const before = {
      change: BETA,
      stickyBy: 'request',
      stages: [
        { share: 0, hold: LONG },
        { share: 100, hold: LONG },
      ],
    };
    const name = await begin(before);
    await nodes[0].admin('POST', `/admin/v1/rollouts/${name}/promote`, {});
    await follow(name, 'running', 2);
    const stages = [
      { share: 0, hold: LONG },
      { share: 50, hold: LONG },
      { share: 100, hold: LONG },
    ];
    for (const node of nodes) {
      await node.changeConfiguration((config) => void Object.assign(config['rollouts'][name], { stages }));
      expect((await node.admin('POST', '/admin/v1/config/reload')).status).to.equal(200);
      expect((await served(node)).headers['x-routing-provider']).to.equal('beta');
    }
    await follow(name, 'running', 3);
    expect(await auditOf(name)).to.deep.equal(['rollout.restage', 'rollout.promote', 'rollout.begin']);
  });

  // Keep this test last, because it kills a node.
  it('advance while a node is down, and this node continues at the current stage after its restart', async () => {
    const guards = { errorRate: { minCalls: 20 } };
    const stages = [
      { share: 50, hold: '1s' },
      { share: 60, hold: '1s' },
      { share: 70, hold: LONG },
    ];
    const name = await begin({ change: BETA, stickyBy: 'request', stages, guards });
    await load(async () => (await shown(name)).inStage.treatment.calls > 40);
    await nodes[0].kill();
    const [, survivor] = nodes;
    const configured = await readFile(join(survivor.configFolder, 'gateway.config.yml'), 'utf8');
    await until('the other rollout continues', async () => {
      await Promise.all(Array.from({ length: 20 }, () => call(survivor)));
      return (await shown(name)).stage === 3;
    });
    nodes = [
      await startGateway({ stores, upstreams: { acme: { url: acme.url } }, configure: () => configured }),
      survivor,
    ];
    await follow(name, 'running', 3);
    expect(await auditOf(name)).to.deep.equal(['rollout.advance', 'rollout.advance', 'rollout.begin']);
  });

  /** Answers one call in `oneIn` with the script, beginning with the first. */
  function sometimes(script: Script, oneIn: number): Script {
    const usual = messagesAnswer({ usage: USAGE });
    let calls = 0;
    return {
      answer: (exchange) => {
        calls += 1;
        return (calls % oneIn === 1 ? script : usual).answer(exchange);
      },
    };
  }
});

for (const fastLane of ['true', 'false']) {
  describe(`A rollout of settings (${fastLane === 'true' ? 'fast lane' : 'through Express'})`, function () {
    this.timeout(120_000);
    const acme = useUpstream();
    const beta = useUpstream();

    const gateway = useGateway(() => {
      for (const upstream of [acme, beta]) upstream.always(messagesAnswer({ usage: USAGE }));
      return {
        upstreams: { acme: { url: acme.url }, beta: { url: beta.url } },
        env: { FAST_LANE: fastLane },
        configure: (config) => {
          config['pipelines'].quality.policies[2]['strategy-routing'][0].action.upstreams = ['acme'];
          const settings = { 'strategy-routing': { upstreams: ['beta'] } };
          const change = { pipeline: { name: 'quality', settings } };
          config['rollouts'] = { settings: { change, stickyBy: 'key', stages: [{ share: 50, hold: LONG }] } };
        },
      };
    });
    after(async () => {
      await Promise.all([acme, beta].map((upstream) => upstream?.stop()));
    });

    it("applies the settings of each group to that group's calls of the configured pipeline, and to no other calls", async () => {
      await until('it has begun', async () => {
        const { json } = await gateway.admin('GET', '/admin/v1/rollouts/settings');
        return json.status === 'running';
      });
      const seen = new Set<string>();
      for (let customers = 0; customers < 12; customers += 1) {
        const { key } = await gateway.newCustomer('1');
        const answers = await Promise.all([1, 2, 3].map(() => gateway.call('/v1/messages', { key, body: ask() })));
        const providers = new Set(answers.map(({ headers }) => String(headers['x-routing-provider'])));
        expect(providers.size).to.equal(1);
        for (const each of providers) seen.add(each);
        const { key: other } = await gateway.newCustomer('1');
        const answer = await gateway.call('/speed/v1/messages', { key: other, body: ask() });
        expect(answer.status).to.equal(200);
      }
      expect([...seen].sort()).to.deep.equal(['acme', 'beta']);
      await until('all are counted', async () => {
        const { control, treatment } = (await gateway.admin('GET', '/admin/v1/rollouts/settings')).json.inAll;
        return control.calls + treatment.calls === 36 && treatment.calls > 0;
      });
      const { items } = await until('all records', async () => {
        const { json } = await gateway.admin('GET', '/admin/v1/usage?limit=100');
        return json.items.length === 48 ? json : undefined;
      });
      for (const { path, rollout, rolloutGroup, upstream } of items) {
        if (path === '/v1/messages')
          expect([rollout, rolloutGroup]).to.deep.equal(['settings', upstream === 'beta' ? 'treatment' : 'control']);
        else expect([rollout, rolloutGroup]).to.deep.equal([null, null]);
      }
    });
  });
}
