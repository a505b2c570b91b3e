import { expect } from 'chai';
import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import type { Configuration } from '../../../core/configuration/configuration';
import type { Prepare } from '../../../core/configuration/live-configuration';
import { LiveRollouts, type SeenCall } from '../../../core/rollouts/live-rollouts';
import { definitionOf, type Rollout } from '../../../core/rollouts/rollout';
import { type EngineGateway, RolloutEngine } from '../../../plugins/rollouts/engine';
import { countOf, measured } from '../../../plugins/rollouts/guards';
import { give, type Order } from '../../../plugins/rollouts/orders';
import { readRows, readSeen } from '../../../plugins/rollouts/store';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { until } from '../../support/until';

const BETA = { kind: 'version', alias: 'newest', model: 'beta' } as const;
const GUARD = { name: 'errorRate', above: 0, times: 1, minCalls: 20 } as const;

function rolloutOf(shares: readonly number[], more: Partial<Rollout> = {}): Rollout {
  const what = { change: BETA, stickyBy: 'account', ...more } as const;
  return {
    name: 'next',
    include: new Set(),
    exclude: new Set(),
    stages: shares.map((share) => ({ share, holdMs: 3_600_000 })) as unknown as Rollout['stages'],
    guards: [],
    shadow: 0,
    onAbort: 'rollback',
    ...what,
    definition: definitionOf(what),
  };
}

const with_ = (...rollouts: Rollout[]) => ({ rollouts }) as unknown as Configuration;

const AWAY = Object.assign(
  () => {
    throw new Error('away');
  },
  { transaction: () => Promise.reject(new Error('away')) },
) as unknown as Knex;

/** A node: an engine with its own configuration. */
class Node {
  readonly rollouts = new LiveRollouts();
  readonly engine: RolloutEngine;
  #prepare: Prepare = () => () => undefined;
  #stop = async () => {};
  isDatabaseAway = false;

  constructor(
    readonly database: Knex,
    public configuration: Configuration,
  ) {
    const node = this;
    const gateway = {
      get database() {
        return node.isDatabaseAway ? AWAY : node.database;
      },
      rollouts: this.rollouts,
      log: quiet,
      liveConfiguration: {
        take: (prepare: Prepare) => {
          node.#prepare = prepare;
        },
      },
      get configuration() {
        return node.configuration;
      },
    };
    this.engine = new RolloutEngine(gateway as unknown as EngineGateway);
  }

  async start(): Promise<this> {
    this.#stop = await this.engine.start();
    return this;
  }

  async reload(next: Configuration): Promise<void> {
    const commit = await this.#prepare(next);
    commit();
    this.configuration = next;
  }

  share(rollout: Rollout): number | undefined {
    return this.rollouts.position(rollout)?.share;
  }

  see(rollout: Rollout, group: SeenCall['group'], calls: number, isError = false, more: Partial<SeenCall> = {}): void {
    const { run = newId(), stage = 1 } = this.rollouts.position(rollout) ?? {};
    const accountId = newId();
    const seen = { name: rollout.name, run, stage, group, isDrawn: true, accountId, isError, isHurt: isError };
    for (let call = 0; call < calls; call += 1)
      this.rollouts.note({ ...seen, costE8: 100n, firstTokenMs: undefined, wholeMs: undefined, ...more });
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}

describe('the engine of rollouts', function () {
  this.timeout(60_000);
  let opened: TestDatabase;
  let database: Knex;
  let running: Node[] = [];

  before(async () => {
    opened = await (DATABASES.find(({ name }) => name === 'Postgres') as (typeof DATABASES)[number]).open();
    ({ database } = opened);
  });
  after(() => opened?.close());
  afterEach(async () => {
    await Promise.all(running.map((node) => node.stop()));
    running = [];
    await database('rollouts').delete();
    await database('audit_log').delete();
  });

  async function start(configuration: Configuration): Promise<Node> {
    const node = await new Node(database, configuration).start();
    running.push(node);
    return node;
  }
  const row = async () => {
    const found = (await readRows(database)).get('next');
    if (found === undefined) throw new Error('it has not begun');
    return found;
  };
  const order = (rollout: Rollout, what: Order, stage?: number) =>
    give(database, rollout, { order: what, actor: 'admin', reason: undefined, stage });
  const refusal = (promise: Promise<unknown>) =>
    promise.then(
      () => 'done',
      ({ code }: { code: string }) => code,
    );
  const actions = async () => (await database('audit_log').orderBy('id')).map(({ action }) => action);
  const seen = async () => readSeen(database, (await row()).run);
  const callsOf = async (stage: number, group: SeenCall['group']) =>
    countOf((await seen())(stage, group) ?? new Map(), 'calls');
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);
  const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
  const LOOK_MS = 1_000;

  it('keeps the state of rollouts when the configuration is reloaded', async () => {
    const rollout = rolloutOf([0.1, 1]);
    const node = await start(with_(rollout));
    await order(rollout, 'promote');
    await node.reload(with_());
    expect(node.share(rollout)).to.equal(undefined);
    await node.reload(with_({ ...rollout, shadow: 0.5 }));
    expect(node.share(rollout)).to.equal(1);
  });

  describe('when the stages of a rollout change', () => {
    it('keeps the stage, its observations and its time if only other stages change', async () => {
      const [before, after] = [rolloutOf([0.1, 0.5, 1]), rolloutOf([0.1, 0.5, 0.8, 1])];
      const node = await start(with_(before));
      await order(before, 'promote');
      await until('it follows', () => node.share(before) === 0.5);
      node.see(before, 'treatment', 7);
      await until('it is counted', async () => (await callsOf(2, 'treatment')) === 7);
      const { run, stage_since } = await row();
      await node.reload(with_(after));
      expect(node.share(after)).to.equal(0.5);
      await until('it has taken them over', async () => (await row()).shares.length === 4);
      expect(await row()).to.deep.include({ run, stage_since, stage: 2, status: 'running' });
      expect(await callsOf(2, 'treatment')).to.equal(7);
      expect(await actions()).to.deep.equal(['rollout.begin', 'rollout.promote', 'rollout.restage']);
      const events = await database('events').whereLike('type', 'rollout.%').orderBy('feed_sequence');
      expect(events.slice(-3).map(({ type, data }) => [type, data.rollout, data.stage])).to.deep.equal([
        ['rollout.begin', 'next', 1],
        ['rollout.promote', 'next', 2],
        ['rollout.restage', 'next', 2],
      ]);
    });

    it('continues at the same share in another stage, with the earlier control group', async () => {
      const more = { guards: [GUARD], stickyBy: 'request' } as const;
      const [before, after] = [rolloutOf([0.1, 1], more), rolloutOf([0.1, 0.5, 1], more)];
      const node = await start(with_(before));
      node.see(before, 'control', 497);
      node.see(before, 'control', 3, false, { firstTokenMs: 90, wholeMs: 900 });
      await until('it is counted', async () => (await callsOf(1, 'control')) === 500);
      await order(before, 'promote');
      await until('it follows', () => node.share(before) === 1);
      const { run, stage_since } = await row();
      await node.reload(with_(after));
      await until('it has taken them over', async () => (await row()).shares.length === 3);
      expect(await row()).to.deep.include({ stage: 3, stage_since, status: 'running' });
      expect((await row()).run).not.to.equal(run);
      const carried = (await seen())(0, 'control');
      expect(carried && countOf(carried, 'calls')).to.equal(500);
      expect(carried && [measured(carried, 'firstToken'), measured(carried, 'whole')]).to.deep.equal([3, 3]);
      await until('it follows', () => node.rollouts.position(after)?.stage === 3);
      node.see(after, 'treatment', 20, true);
      await until('it has looked', async () => (await row()).looks.errorRate?.isWorse === true);
      node.see(after, 'treatment', 10, true);
      await until('a guard ends it', async () => (await row()).status === 'rolled-back');
      expect((await row()).reason).to.contain('of the control group 0 of 500');
      expect((await row()).reason).to.match(/^errorRate: 30 of 30 calls failed/);
    });

    it('uses the same share on all nodes, even on a node with the older configuration file', async () => {
      const [before, after] = [rolloutOf([0.1, 0.5, 1]), rolloutOf([0.2, 0.4, 1])];
      const [one, other] = [await start(with_(before)), await start(with_(before))];
      await order(before, 'promote');
      await one.reload(with_(after));
      await until('both follow', () => one.share(after) === 0.4 && other.share(before) === 0.4);
      await pause(LOOK_MS);
      expect((await row()).shares).to.deep.equal([0.2, 0.4, 1]);
      expect(await refusal(order(before, 'promote'))).to.equal('CONFLICT');
      expect(await refusal(order(before, 'rollback'))).to.equal('done');
    });
  });

  it('continues a rollout that was removed and added again, without counting the time between', async () => {
    const rollout = rolloutOf([0.1, 1]);
    const node = await start(with_(rollout));
    await node.reload(with_());
    await database('rollouts').update({ stage_since: ago(100_000), followed_at: ago(99_900) });
    await node.reload(with_(rollout));
    expect(node.share(rollout)).to.equal(0.1);
    await until('it is watched', async () => (await row()).followed_at > ago(5));
    expect(await row()).to.include({ stage: 1, status: 'running' });
    expect(Date.now() - (await row()).stage_since.getTime()).to.be.within(95_000, 110_000);
  });

  it('starts a different change under the same name from the beginning', async () => {
    const [before, after] = [rolloutOf([0.1, 1]), rolloutOf([0.2, 1], { change: { ...BETA, model: 'gamma' } })];
    const node = await start(with_(before));
    await order(before, 'promote');
    await node.reload(with_(after));
    expect(node.share(after)).to.equal(undefined);
    await until('it begins', () => node.share(after) === 0.2);
  });

  it('advances a rollout by only one stage if two operators promote it at the same time', async () => {
    const rollout = rolloutOf([0.1, 0.5, 1]);
    await start(with_(rollout));
    const [one, other] = await Promise.all([1, 2].map(() => refusal(order(rollout, 'promote', 1))));
    expect([one, other].sort()).to.deep.equal(['CONFLICT', 'done']);
    expect((await row()).stage).to.equal(2);
  });

  it('compares only a few calls of each account between two looks of a guard, counted over all nodes', async () => {
    const rollout = rolloutOf([0.5, 1], { guards: [{ ...GUARD, minCalls: 100 }] });
    const nodes = [await start(with_(rollout)), await start(with_(rollout))];
    const busy = newId();
    for (const node of nodes) node.see(rollout, 'treatment', 30, true, { accountId: busy });
    await until('all are written', async () => countOf((await seen())(1, 'treatment') ?? new Map(), 'hurt') === 60);
    expect(await callsOf(1, 'treatment')).to.equal(10);
    for (const group of ['control', 'treatment'] as const)
      for (let account = 0; account < 100; account += 1) nodes[account % 2]?.see(rollout, group, 1);
    await until('a guard has looked', async () => (await row()).looks.errorRate?.seen === 110);
    nodes[0]?.see(rollout, 'treatment', 30, true, { accountId: busy });
    await until('as many count again', async () => (await callsOf(1, 'treatment')) === 120);
  });

  it('keeps the rollouts while the database is unavailable, accepts a reload, and loses no observation', async () => {
    const rollout = rolloutOf([0.1, 1]);
    const [node, other] = [await start(with_(rollout)), await start(with_(rollout))];
    node.isDatabaseAway = true;
    node.see(rollout, 'treatment', 3);
    await order(rollout, 'promote');
    await until('the other follows', () => other.share(rollout) === 1);
    await pause(LOOK_MS);
    expect(node.share(rollout)).to.equal(0.1);
    const reloaded = { ...rollout, shadow: 0.5 };
    await node.reload(with_(reloaded));
    expect(node.share(reloaded)).to.equal(0.1);
    node.see(rollout, 'treatment', 4);
    node.isDatabaseAway = false;
    await until('it follows', () => node.share(reloaded) === 1);
    await until('all is saved', async () => (await callsOf(1, 'treatment')) === 7);
  });
});
