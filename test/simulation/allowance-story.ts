import assert from 'node:assert/strict';
import { RECALL_WAIT_MS } from '../../core/ledger/allowances/allowance-store';
import { smallest } from '../../core/ledger/amount';
import { leaseTimes } from '../../core/ledger/lease-times';
import type { AccountStatus, Payer, SetScopeRequest, TagReader, TagState } from '../../core/ledger/ledger';
import { newScope, tagOf, tagScope } from '../../core/ledger/scopes';
import { shardOf } from '../../core/ledger/shard';
import type { Opening } from '../../core/ledger/spool/spool-file';
import { ModelLedger } from '../support/model-ledger';
import { type Random, seeded } from '../support/random';
import { AllowanceNode, type Network } from './allowance-node';
import { type AccountRow, SimulatedDatabase } from './database';
import { SimulatedSpoolFolder } from './spool-folder';
import { installVirtualTime, type VirtualTime } from './virtual-time';

const START_MS = Date.UTC(2026, 0, 1);
const PATIENCE_MS = 20 * 60_000;
/** The longest time that a message or its retry takes. */
const LATEST_MS = 6_000;
/** How long calls continue to begin. */
const BUSY_MS = 5_000;
/** The times of production with the shortest lease. The pause after a loss is longer by the time that a message may take. */
const TIMES = { ...leaseTimes(5), sweepEveryMs: 1_000, spoolEveryMs: 1_000, pauseMs: 20_000 };
const { leaseMs } = TIMES;

export interface AllowanceFigures {
  readonly calls: number;
  /** The number of calls admitted from allowances. */
  readonly admitted: number;
  readonly refused: number;
  /** Calls refused for lack of money at a node that was silent for longer than its lease. Calls that had held the money were over, but the ledger did not know. */
  readonly refusedForSilence: number;
  readonly unavailable: number;
  readonly crashes: number;
  readonly suspensions: number;
  readonly failovers: number;
  /** Leases that ended while their node had unreported calls. */
  readonly uncovered: number;
}

/** A call as its caller knows it. */
interface Call extends Payer {
  /** Its tag, such as `customer=1`; undefined for none. */
  readonly tags: string | undefined;
  readonly rid: string;
  readonly node: AllowanceNode;
  /** The generation of the allowance that admitted the call. */
  generation: string | undefined;
  /** The amount that the call certainly holds, and the amount that it may hold. */
  heldE8: bigint;
  maxE8: bigint;
  /** The cost of the call once it is ending. */
  costE8: bigint;
  state: 'beginning' | 'open' | 'ending' | 'ended' | 'gone';
  /** The charge that the caller was told. */
  toldE8: bigint | undefined;
  /** Whether the end of the call has reached the ledger. */
  isTold: boolean;
}

/** A request that may be refused for lack of money, and the lowest available amount during it. */
interface Asking {
  readonly payer: Payer;
  readonly tags: string | undefined;
  readonly ownRid: string;
  minE8: bigint;
  /** The lowest amount without the money of nodes that had calls and were silent for longer than their lease. */
  minIfSilentE8: bigint;
}

/** Returns the customer that a call's tags name. */
function customerIn(tags: string | undefined): string | undefined {
  return /customer=\S+/.exec(tags ?? '')?.[0];
}

/** Simulates the seeds from the first to the last. @throws with the seed that fails */
export async function simulateAllowances(first: number, last: number): Promise<AllowanceFigures> {
  const sums: Record<string, number> = {};
  for (let seed = first; seed <= last; seed += 1) {
    const story = await simulateAllowance(seed).catch((cause) => {
      const repeat = `npm run simulation -- --allowances --from ${seed} --seeds 1`;
      throw new Error(`seed ${seed}; repeat it with ${repeat}`, { cause });
    });
    for (const [name, count] of Object.entries(story)) sums[name] = (sums[name] ?? 0) + count;
  }
  return sums as unknown as AllowanceFigures;
}

export async function simulateAllowance(seed: number): Promise<AllowanceFigures> {
  const time = installVirtualTime(START_MS);
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const { random } = Math;
  const chance = seeded(seed);
  Math.random = () => chance.below(1_000) / 1_000;
  try {
    return await new AllowanceStory(seed, time).tell();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Math.random = random;
    time.restore();
  }
}

/** Simulates nodes with allowances over one ledger, and checks the whole state after each step of the ledger. */
class AllowanceStory {
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #database = new SimulatedDatabase();
  readonly #network: Network;
  readonly #nodes: AllowanceNode[] = [];
  readonly #disks: SimulatedSpoolFolder[] = [];
  readonly #payers: Payer[] = [];
  readonly #account: AccountRow;
  /** What the ledger has read of tags from Postgres, by the place of its operation. A ledger that goes back reads the same again. */
  readonly #reads = new Map<string, readonly TagState[]>();
  #place = 0;
  readonly #readTags: TagReader = async (scopes) => {
    const name = `${this.#place} ${scopes}`;
    const states = this.#reads.get(name) ?? this.#database.tagStates(scopes);
    this.#reads.set(name, states);
    return states;
  };
  #store = new ModelLedger({ now: Date.now, readTags: this.#readTags });
  /** Every operation so far, to rebuild an older state. */
  #log: { readonly at: number; readonly work: (store: ModelLedger) => Promise<unknown> }[] = [];
  #tail: Promise<unknown> = Promise.resolve();
  readonly #calls = new Map<string, Call>();
  readonly #asking = new Set<Asking>();
  /** Generations whose lease ended with unreported calls. They are not covered, and may be charged less than their callers were told. */
  readonly #uncovered = new Set<string>();
  /** The last report of each generation, even of those whose lease has ended: their nodes learn it from the answer to the next. */
  readonly #reported = new Map<string, number>();
  readonly #silent = new Map<string, number>();
  /** Whether the master fails over. No node crashes then, because its spool must be sent before leases end. */
  readonly #failsOver: boolean;
  #stopped: 'account' | string | undefined;
  /** Whether an answer has said that calls with the tag count. */
  #isTagLimited = false;
  #wrong: Error | undefined;
  #ids = 0;
  #figures = {
    calls: 0,
    admitted: 0,
    refused: 0,
    refusedForSilence: 0,
    unavailable: 0,
    crashes: 0,
    suspensions: 0,
    failovers: 0,
  };

  constructor(seed: number, time: VirtualTime) {
    this.#time = time;
    this.#random = seeded(seed);
    this.#failsOver = this.#random.below(4) === 0;
    const accountId = this.#newId();
    const [first, second] = [this.#newId(), this.#newId()];
    const limitE8 = this.#random.pick([0n, 0n, 600n, 5_000n]) || undefined;
    const creditE8 = this.#random.pick([300n, 400n, 600n, 1_000n, 3_000n, 100_000n]);
    this.#account = { accountId, keyId: first, limitE8, creditRid: this.#newId(), creditE8 };
    const teamLimitE8 = this.#random.pick([0n, 200n, 600n, 2_000n]) || undefined;
    const team = this.#random.below(2) === 0 ? undefined : { id: 'team', limitE8: teamLimitE8, rev: 0 };
    Object.assign(this.#account, { moreKeys: [{ keyId: second, limitE8: undefined }], team });
    const tagLimitE8 = this.#random.pick([0n, 100n, 300n, 2_000n]);
    if (tagLimitE8 > 0n) this.#account.tag = { limitE8: tagLimitE8, rev: 1 };
    this.#database.accounts.push(this.#account);
    this.#payers.push({ accountId, keyId: first }, { accountId, keyId: second });
    this.#network = {
      time,
      random: this.#random,
      database: this.#database,
      shards: new Set([shardOf(accountId)]),
      times: TIMES,
      recallWaitMs: RECALL_WAIT_MS,
      weather: { isBad: true },
      atStore: (work) => this.#atStore(work),
      publish: (account) => this.#publish(account),
      admitted: (node, call) => this.#admitted(node, call),
    };
  }

  async tell(): Promise<AllowanceFigures> {
    await this.#prepare();
    const work = this.#nodes.flatMap((_, index) =>
      Array.from({ length: 8 + this.#random.below(8) }, () => this.#call(index)),
    );
    if (this.#random.below(2) === 0) work.push(this.#operate());
    if (this.#random.below(2) === 0) work.push(this.#suspend());
    if (this.#random.below(3) === 0) work.push(this.#slow());
    if (this.#failsOver) work.push(this.#failOver());
    await this.#until('all calls have ended', Promise.all(work));
    this.#network.weather.isBad = false;
    for (const index of this.#nodes.keys()) this.#alive(index);
    await this.#until('the ledger answers', this.#sweepCredits());
    await this.#until('what is late has come', this.#pause(LATEST_MS));
    await this.#time.run(PATIENCE_MS, () => this.#wrong !== undefined || this.#isAtRest());
    await this.#until(
      'all nodes have stopped',
      Promise.all(this.#nodes.map((node) => this.#as(node, () => node.stop()))),
    );
    this.#assertWhole();
    return { ...this.#figures, uncovered: this.#uncovered.size };
  }

  async #prepare(): Promise<void> {
    const { accountId, creditRid, creditE8, limitE8 } = this.#account;
    await this.#atStore((store) => store.open().then(() => store.setAccount(accountId, 'active')));
    await this.#atStore((store) => this.#setTeam(store));
    await this.#setTag((request) => this.#atStore((store) => store.setScope(request)));
    for (const payer of this.#payers)
      await this.#atStore((store) => store.setKey(this.#keyRequest(payer, 'active', 0)));
    await this.#atStore((store) => store.credit({ accountId, rid: creditRid, amountE8: creditE8 }));
    assert.equal(this.#account.limitE8, limitE8);
    const count = 2 + this.#random.below(2);
    for (let index = 0; index < count; index += 1) {
      this.#disks.push(new SimulatedSpoolFolder());
      this.#nodes.push(this.#newNode(index, this.#random.below(3) === 0));
    }
  }

  /** Adds a credit that a lost ledger has not received, as the sweeper of accounts does. */
  async #sweepCredits(): Promise<void> {
    const { accountId, creditRid, creditE8 } = this.#account;
    for (;;) {
      const { outcome } = await this.#atStore((store) =>
        store.credit({ accountId, rid: creditRid, amountE8: creditE8 }),
      );
      if (outcome !== 'not_ready') return;
      await this.#pause(1_000);
    }
  }

  /** Tells a ledger the team of all keys, if there is one. */
  async #setTeam(store: Pick<ModelLedger, 'setScope'>): Promise<void> {
    const { accountId, team } = this.#account;
    if (team === undefined) return;
    const { id, limitE8, rev } = team;
    await store.setScope({ accountId, scope: `t:${id}`, name: 'team', rev, limits: { total: limitE8 } });
  }

  /** Sets the limit of the tag, if it has one. */
  async #setTag(set: (request: SetScopeRequest) => Promise<void>): Promise<void> {
    const { accountId, tag } = this.#account;
    if (tag === undefined) return;
    const { limitE8, rev } = tag;
    const name = 'customer';
    await set({ accountId, scope: tagScope(accountId, name), name, rev, limits: { total: limitE8 }, isLimited: true });
    this.#isTagLimited = true;
  }

  #keyRequest(payer: Payer, status: 'active' | 'revoked', rev: number) {
    const limitE8 = payer.keyId === this.#account.keyId ? this.#account.limitE8 : undefined;
    const settings = { rev, name: 'key', allowedModels: undefined, teamId: this.#account.team?.id };
    return { ...payer, hash: payer.keyId, status, limitE8, settings };
  }

  #newNode(index: number, willDie: boolean): AllowanceNode {
    const life = willDie && !this.#failsOver ? 1 + this.#random.below(150) : Number.MAX_SAFE_INTEGER;
    const disk = this.#disks[index] as SimulatedSpoolFolder;
    const machine = { isDead: false, wallMs: 0, stoodMs: 0, suspendedUntil: 0 };
    return this.#time.as(machine, () => new AllowanceNode(this.#network, machine, disk, life));
  }

  #alive(index: number): AllowanceNode {
    const node = this.#nodes[index];
    if (node !== undefined && !node.isDead) return node;
    this.#figures.crashes += 1;
    for (const call of this.#calls.values()) if (call.node === node && call.state !== 'ended') call.state = 'gone';
    const next = this.#newNode(index, this.#random.below(3) === 0);
    this.#nodes[index] = next;
    return next;
  }

  #as<T>(node: AllowanceNode, work: () => T): T {
    return this.#time.as(node.machine, work);
  }

  /** Runs one step of the ledger, and then checks the whole state. */
  #atStore<T>(work: (store: ModelLedger) => Promise<T>): Promise<T> {
    const done = this.#tail.then(() => {
      this.#place = this.#log.push({ at: this.#time.now(), work });
      return work(this.#store);
    });
    this.#tail = done.then(
      () => this.#look(),
      () => this.#look(),
    );
    return done;
  }

  #publish(accountId: string): void {
    for (const node of this.#nodes)
      if (this.#random.below(4) > 0)
        this.#time.as(node.machine, () => setTimeout(() => node.hear(accountId), 1 + this.#random.below(20)));
  }

  /** Runs calls of each node on a shared key, one at any moment. */
  async #call(index: number): Promise<void> {
    await this.#pause(this.#random.below(BUSY_MS));
    const node = this.#alive(index);
    // Uses the node's own clock, because a suspended machine begins no call.
    const begun = this.#as(node, () =>
      new Promise<void>((begin) => setTimeout(begin, 1)).then(() => this.#callOn(node)),
    );
    await Promise.race([begun, node.died]);
  }

  async #callOn(node: AllowanceNode): Promise<void> {
    const payer = this.#random.pick(this.#payers);
    const rid = this.#newId();
    const requestId = `req-${rid}`;
    const record = (billing: string) => JSON.stringify({ requestId, billing });
    const amountE8 = this.#random.pick([10n, 10n, 20n, 60n]);
    const tags = this.#random.pick(['', '', 'agent=a', 'agent=a customer=1', 'customer=2']) || undefined;
    const isTagLimited = this.#isTagLimited;
    const call: Call = {
      ...payer,
      tags,
      rid,
      node,
      generation: undefined,
      heldE8: 0n,
      maxE8: amountE8,
      costE8: 0n,
      state: 'beginning',
      toldE8: undefined,
      isTold: false,
    };
    this.#calls.set(rid, call);
    this.#figures.calls += 1;
    const stopped = this.#stopped;
    const release = async () => {
      call.state = 'ending';
      const { inTime } = await node.settler.release({ ...payer, rid, record: record('released') });
      if (inTime) call.state = 'ended';
    };
    const asking = this.#ask(payer, rid, tags);
    try {
      const request = { ...payer, rid, amountE8, keyRev: 0, lifetimeMs: leaseMs, facts: record('expired'), tags };
      const { outcome } = await node.ledger.reserve(request);
      if (outcome === 'insufficient_balance' || outcome === 'limit_exceeded')
        this.#mayRefuse(asking, amountE8, `reserve ${rid} ${outcome}`);
      if (outcome !== 'reserved') {
        this.#asking.delete(asking);
        call.state = 'ended';
        call.isTold = true;
        return;
      }
      if (stopped !== undefined && (stopped === 'account' || stopped === payer.keyId))
        this.#fail(`${rid} was admitted after an answer that no more would be`);
      if (isTagLimited && tags?.includes('customer') === true && call.generation !== undefined)
        this.#fail(`${rid} was admitted from an allowance after an answer that its tag has a limit`);
    } catch {
      this.#figures.unavailable += 1;
      return release();
    } finally {
      this.#asking.delete(asking);
    }
    call.heldE8 = amountE8;
    call.state = 'open';
    node.leases.track(payer, rid, call.heldE8);
    await this.#pause(this.#random.below(5) === 0 ? this.#random.below(leaseMs * 1.25) : this.#random.below(600));
    node.leases.untrack(rid);
    if (this.#random.below(6) === 0) return release();
    const costE8 = (call.maxE8 * BigInt(this.#random.below(13))) / 10n;
    const heldE8 = call.heldE8;
    call.maxE8 = costE8 > call.maxE8 ? costE8 : call.maxE8;
    call.costE8 = costE8 < heldE8 ? costE8 : heldE8;
    call.state = 'ending';
    const paying = this.#ask(payer, rid, tags);
    const settled = await node.settler.settle({ ...payer, rid, costE8, record: record('actual') });
    this.#asking.delete(paying);
    if (!settled.inTime) return;
    // A call whose lease had ended is charged nothing.
    if (settled.chargedE8 < costE8 && settled.chargedE8 >= heldE8)
      this.#mayRefuse(paying, costE8 - heldE8, `settle ${rid} short`);
    call.toldE8 = settled.chargedE8;
    call.state = 'ended';
  }

  /** Lets an operator revoke a key or freeze the account. */
  async #operate(): Promise<void> {
    await this.#pause(this.#random.below(BUSY_MS));
    const index = this.#random.below(this.#nodes.length);
    const node = this.#alive(index);
    const [, second] = this.#payers as [Payer, Payer];
    if (this.#random.below(3) === 0) return this.#limitTag(node);
    const isKey = this.#random.below(2) === 0;
    const { accountId } = this.#account;
    const work = this.#as(node, async () => {
      for (let times = 0; times < 5; times += 1) {
        try {
          if (isKey) await node.shared.setKey(this.#keyRequest(second, 'revoked', 1));
          else await node.shared.setAccount(accountId, 'frozen' as AccountStatus);
          this.#stopped = isKey ? second.keyId : 'account';
          return;
        } catch {
          await this.#pause(100);
        }
      }
    });
    if (isKey)
      Object.assign(this.#account, { moreKeys: [{ ...second, limitE8: undefined, keyStatus: 'revoked', rev: 1 }] });
    else this.#account.status = 'frozen';
    await Promise.race([work, node.died]);
  }

  /** Lets an operator set or change the limit of the tag. */
  async #limitTag(node: AllowanceNode): Promise<void> {
    const { limitE8, rev } = this.#account.tag ?? { limitE8: 200n, rev: 0 };
    this.#account.tag = { limitE8: limitE8 * 2n, rev: rev + 1 };
    const work = this.#as(node, async () => {
      for (let times = 0; times < 5; times += 1) {
        try {
          return await this.#setTag((request) => node.shared.setScope(request));
        } catch {
          await this.#pause(100);
        }
      }
    });
    await Promise.race([work, node.died]);
  }

  async #slow(): Promise<void> {
    await this.#pause(this.#random.below(BUSY_MS));
    this.#random.pick(this.#nodes).slowUntil = this.#time.now() + this.#random.below(8_000);
  }

  async #suspend(): Promise<void> {
    await this.#pause(this.#random.below(BUSY_MS));
    const { machine } = this.#random.pick(this.#nodes);
    if (machine.isDead) return;
    this.#figures.suspensions += 1;
    const stopsClock = this.#random.below(2) === 0;
    this.#time.suspend(machine, 500 + this.#random.below(6_000), stopsClock);
    // Sets the time of day instead, mostly back: one of the two clocks stays right.
    if (!stopsClock) machine.wallMs += 1_000 - this.#random.below(8_000);
  }

  /** Replaces the ledger by a replica that lacks some writes. It rejects calls until it was compared with Postgres. */
  async #failOver(): Promise<void> {
    await this.#pause(1_000 + this.#random.below(BUSY_MS));
    this.#figures.failovers += 1;
    await this.#tail;
    const kept = this.#random.below(3) === 0 ? 0 : Math.max(0, this.#log.length - this.#random.below(30));
    let now = 0;
    let isPast = true;
    const older = new ModelLedger({ now: () => (isPast ? now : this.#time.now()), readTags: this.#readTags });
    const before = this.#log.slice(0, kept);
    for (const [index, { at, work }] of before.entries()) {
      now = at;
      this.#place = index + 1;
      await work(older).catch(() => undefined);
    }
    isPast = false;
    await older.shut();
    this.#log = [...before, { at: this.#time.now(), work: (store) => store.shut() }];
    this.#store = older;
  }

  /** Checks a call that a node admitted from its allowance: the ledger must have granted that money. */
  #admitted(node: AllowanceNode, { rid, generation, accountId, keyId }: Opening): void {
    const call = this.#calls.get(rid);
    if (call === undefined) return;
    this.#figures.admitted += 1;
    call.generation = generation;
    call.heldE8 = call.maxE8;
    if (this.#stopped === 'account' || this.#stopped === keyId)
      this.#fail(`${rid} was admitted after an answer that no more would be`);
    if (this.#figures.failovers > 0) return;
    const al = this.#store.allowances.get(accountId)?.get(generation);
    if (al?.state !== 'live' || al.untilMs <= this.#time.now())
      this.#fail(`${rid} was admitted without a lease (${al?.state}, ${(al?.untilMs ?? 0) - this.#time.now()} ms)`);
    this.#mayHold(call);
    assert.ok(!node.isDead);
  }

  /** Asserts that the money of held calls is there, unless their lease had ended. */
  #mayHold({ generation = '', accountId, rid }: Call): void {
    if (this.#figures.failovers > 0 || this.#uncovered.has(generation)) return;
    const al = this.#store.allowances.get(accountId)?.get(generation);
    const usedE8 = this.#usedOf(generation, ({ state, heldE8, costE8 }) => (state === 'ending' ? costE8 : heldE8));
    if (al !== undefined && al.state === 'live' && usedE8 > al.totalE8)
      this.#fail(`${rid}: calls of ${generation} hold ${usedE8} of ${al.totalE8}`);
  }

  /** Returns the amount that calls of an allowance hold or have cost, and that the ledger does not know. */
  #usedOf(generation: string, heldBy: (call: Call) => bigint): bigint {
    let sum = 0n;
    for (const call of this.#calls.values()) {
      if (call.generation !== generation || call.isTold) continue;
      sum += call.state === 'ended' ? (call.toldE8 ?? 0n) : heldBy(call);
    }
    return sum;
  }

  #ask(payer: Payer, ownRid: string, tags: string | undefined): Asking {
    const asking = { payer, tags, ownRid, minE8: 10n ** 15n, minIfSilentE8: 10n ** 15n };
    this.#asking.add(asking);
    this.#measure(asking);
    return asking;
  }

  /** Updates the lowest amount that one ledger may have had available, given all calls between their begin and their end. */
  #measure(asking: Asking): void {
    const { accountId, keyId } = asking.payer;
    const { accounts, keys, scopes, reservations } = this.#store.snapshot();
    const account = accounts.get(accountId);
    const key = keys.get(keyId);
    if (account === undefined || key === undefined) return;
    let heldE8 = 0n;
    let heldByKeyE8 = 0n;
    let heldByTagE8 = 0n;
    const hold = (ofKey: string | undefined, amountE8: bigint, tags?: string) => {
      heldE8 += amountE8;
      if (ofKey === keyId) heldByKeyE8 += amountE8;
      if (tags !== undefined && customerIn(tags) === customerIn(asking.tags)) heldByTagE8 += amountE8;
    };
    for (const [rid, { state, amountE8, keyId: ofKey }] of reservations)
      if (state === 'open' && (this.#calls.get(rid)?.generation !== undefined || !this.#isUnderWay(rid)))
        hold(ofKey, amountE8, this.#calls.get(rid)?.tags);
    const known = this.#store.allowances.get(accountId);
    const living = new Set<string>();
    for (const call of this.#calls.values()) {
      if (call.isTold) continue;
      if (call.generation !== undefined && call.state !== 'gone') living.add(call.generation);
      if (call.rid === asking.ownRid) hold(call.keyId, call.heldE8, call.tags);
      else if (call.state === 'ended') {
        if (call.generation !== undefined) hold(call.keyId, call.toldE8 ?? 0n);
      } else if (call.state !== 'gone') hold(call.keyId, call.maxE8, call.tags);
    }
    // The money of a dead node stays held until another takes over.
    for (const [generation, al] of known ?? [])
      if (!living.has(generation) || this.#isGone(generation))
        hold(al.keyId, al.state === 'live' ? al.openE8 : al.totalE8);
    const spentE8 = scopes.get(`k:${keyId}`)?.spending.spentE8.total ?? 0n;
    const room = key.limitE8 === undefined ? 10n ** 15n : key.limitE8 - spentE8 - heldByKeyE8;
    const { spending, limits } = scopes.get(`t:${this.#account.team?.id}`) ?? newScope();
    // All keys of the account are in the team, so that its open calls are those of the account.
    const teamRoom = limits.total === undefined ? 10n ** 15n : limits.total - spending.spentE8.total - heldE8;
    const minE8 = smallest(account.postedE8 - heldE8, room, teamRoom, this.#roomOfTag(asking.tags, heldByTagE8));
    if (minE8 < asking.minE8) asking.minE8 = minE8;
    let silentE8 = 0n;
    for (const [generation, al] of known ?? []) {
      const moreE8 = al.totalE8 - this.#usedOf(generation, ({ maxE8 }) => maxE8);
      if (this.#silent.has(generation) && moreE8 > 0n) silentE8 += moreE8;
    }
    if (minE8 - silentE8 < asking.minIfSilentE8) asking.minIfSilentE8 = minE8 - silentE8;
  }

  /** Returns what the limit of a call's tag leaves. */
  #roomOfTag(tags: string | undefined, heldE8: bigint): bigint {
    const { accountId } = this.#account;
    const customer = customerIn(tags);
    const limitE8 = this.#store.snapshot().tagsOf(accountId).names.get('customer')?.limits?.total;
    if (customer === undefined || limitE8 === undefined) return 10n ** 15n;
    const scope = this.#store.snapshot().scopes.get(tagScope(accountId, customer)) ?? newScope();
    return limitE8 - scope.spending.spentE8.total - heldE8;
  }

  #isUnderWay(rid: string): boolean {
    const state = this.#calls.get(rid)?.state;
    return state === 'beginning' || state === 'open' || state === 'ending';
  }

  #isGone(generation: string): boolean {
    return [...this.#calls.values()].some((call) => call.generation === generation && call.node.isDead);
  }

  #mayRefuse({ minE8, minIfSilentE8 }: Asking, wantedE8: bigint, what: string): void {
    this.#figures.refused += 1;
    if (this.#figures.failovers > 0 || minE8 < wantedE8) return;
    // A node had answered its callers that calls had ended, but had not reported this to the ledger for longer than its lease.
    if (minIfSilentE8 < wantedE8) this.#figures.refusedForSilence += 1;
    else this.#fail(`${what}: a single ledger had ${minE8} for ${wantedE8}`);
  }

  /** Checks every invariant after each step of the ledger. */
  #look(): void {
    const { accounts, keys, scopes, reservations } = this.#store.snapshot();
    const { accountId } = this.#account;
    const account = accounts.get(accountId);
    const open = [...reservations.values()].filter(({ state }) => state === 'open');
    const allowances = [...(this.#store.allowances.get(accountId)?.entries() ?? [])];
    const sumOf = (keyId: string | undefined) =>
      [
        ...open.flatMap((each) => (keyId === undefined || each.keyId === keyId ? [each.amountE8] : [])),
        ...allowances.flatMap(([, al]) => (keyId === undefined || al.keyId === keyId ? [al.totalE8] : [])),
      ].reduce((sum, each) => sum + each, 0n);
    if (account !== undefined) {
      if (account.availableE8 < 0n) this.#fail('available is below 0');
      if (account.availableE8 + account.heldE8 !== account.postedE8)
        this.#fail('available and held are not what is posted');
      if (account.heldE8 !== sumOf(undefined)) this.#fail('held is not what is open and in allowances');
    }
    for (const [keyId, key] of keys) {
      const { heldE8, spending } = scopes.get(`k:${keyId}`) ?? newScope();
      if (heldE8 !== sumOf(keyId)) this.#fail('what a key holds is not what is open and in allowances');
      const isOver = key.limitE8 !== undefined && spending.spentE8.total + heldE8 > key.limitE8;
      if (isOver && this.#figures.failovers === 0) this.#fail('a key is above its limit');
    }
    const team = scopes.get(`t:${this.#account.team?.id}`);
    if (team !== undefined && account !== undefined) {
      if (team.heldE8 !== account.heldE8) this.#fail('what a team holds is not what its account holds');
      const isOver = team.limits.total !== undefined && team.spending.spentE8.total + team.heldE8 > team.limits.total;
      if (isOver && this.#figures.failovers === 0) this.#fail('a team is above its limit');
    }
    for (const [name, { heldE8, spending }] of scopes) {
      if (tagOf(name) === undefined) continue;
      const names = open.filter((each) => each.scopes.split(' ').includes(name));
      if (heldE8 !== names.reduce((sum, each) => sum + each.amountE8, 0n)) this.#fail('what a tag holds is not open');
      const { limitE8 = 0n } = this.#account.tag ?? {};
      const isOver = spending.spentE8.total + heldE8 > limitE8;
      if (isOver && this.#figures.failovers === 0) this.#fail('a tag is above its limit');
    }
    for (const entry of this.#store.snapshot().outbox) {
      for (const { rid } of entry.calls ?? [{ rid: entry.rid }]) {
        const call = this.#calls.get(rid);
        if (call !== undefined) call.isTold = true;
      }
    }
    for (const [generation, al] of allowances)
      if (al.state !== 'live' && this.#usedOf(generation, ({ heldE8 }) => heldE8) > al.totalE8)
        this.#uncovered.add(generation);
    for (const [generation, { state, sequence }] of allowances) {
      if (state !== 'draining' || sequence > (this.#silent.get(generation) ?? sequence) + 1)
        this.#silent.delete(generation);
      else if (this.#reported.get(generation) === sequence) this.#silent.set(generation, sequence);
      if (state === 'live') this.#reported.set(generation, sequence);
    }
    for (const asking of this.#asking) this.#measure(asking);
  }

  async #until(what: string, work: Promise<unknown>): Promise<void> {
    let done = false;
    void work.then(
      () => {
        done = true;
      },
      (error: Error) => {
        this.#wrong ??= error;
      },
    );
    await this.#time.run(PATIENCE_MS, () => done || this.#wrong !== undefined);
    if (this.#wrong !== undefined) throw this.#wrong;
    assert.ok(done, what);
  }

  #isAtRest(): boolean {
    const { outbox, reservations, accounts } = this.#store.snapshot();
    if (!this.#disks.every(({ isEmpty }) => isEmpty) || outbox.length > 0) return false;
    if (accounts.get(this.#account.accountId)?.heldE8 !== 0n) return false;
    if (![...this.#database.entries.values()].some(({ kind }) => kind === 'credit')) return false;
    return ![...reservations.values()].some(({ state }) => state === 'open');
  }

  #assertWhole(): void {
    if (this.#wrong !== undefined) throw this.#wrong;
    const { accountId } = this.#account;
    const isLossy = this.#figures.failovers > 0;
    assert.ok(this.#isAtRest(), `at rest: ${this.#whatIsLeft()}`);
    const { charges, entries } = this.#database;
    const byRid = new Map(charges.map((charge) => [charge.rid, charge]));
    const rids = charges.map(({ rid }) => rid);
    assert.deepEqual(
      rids.filter((rid, at) => rids.indexOf(rid) !== at),
      [],
      'charged twice',
    );
    for (const { rid, toldE8 = 0n, generation = '' } of this.#calls.values()) {
      const { costE8, shortfallE8 } = byRid.get(rid) ?? { costE8: 0n, shortfallE8: 0n };
      const isShort = isLossy || this.#uncovered.has(generation);
      const isCharged = costE8 === toldE8 || (isShort && costE8 < toldE8 && costE8 + shortfallE8 >= toldE8);
      if (toldE8 > 0n && !isCharged) this.#fail(`told ${toldE8} for ${rid}, charged ${costE8}, ${shortfallE8} short`);
    }
    const own = [...entries.values()].sort((one, other) => one.seq - other.seq);
    let posted = 0n;
    for (const [index, entry] of own.entries()) {
      posted += BigInt(entry.amountE8);
      assert.deepEqual([entry.seq, entry.postedE8], [index + 1, String(posted)], 'a gap in the chain, or a wrong sum');
    }
    const chargedE8 = charges.reduce((sum, { costE8 }) => sum + costE8, 0n);
    assert.equal(this.#account.creditE8 - chargedE8, posted, 'what calls cost is what the account has less');
    const account = this.#store.snapshot().accounts.get(accountId);
    assert.deepEqual([account?.postedE8, account?.availableE8, account?.heldE8], [posted, posted, 0n]);
    if (this.#wrong !== undefined) throw this.#wrong;
  }

  #whatIsLeft(): string {
    const { outbox, accounts } = this.#store.snapshot();
    const waiting = this.#disks.map((disk) => disk.waiting.map((rid) => `${rid} ${this.#calls.get(rid)?.state}`));
    const own = [...(this.#store.allowances.get(this.#account.accountId)?.entries() ?? [])];
    const open = [...this.#store.snapshot().reservations].filter(([, { state }]) => state === 'open');
    const deadlines = open.map(
      ([rid]) =>
        `${rid} ${this.#calls.get(rid)?.state} ${(this.#store.snapshot().deadlines.get(rid) ?? 0) - this.#time.now()}`,
    );
    return `${deadlines} open, outbox ${outbox.length}, disks ${waiting}, held ${accounts.get(this.#account.accountId)?.heldE8}, ${own.map(
      ([id, al]) => `${id} ${al.state} ${al.totalE8}`,
    )}`;
  }

  #fail(what: string): void {
    this.#wrong ??= new Error(`${this.#time.now() - START_MS} ms: ${what}`);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((wake) => setTimeout(wake, ms));
  }

  /** Makes an id in the shape of a UUIDv7, with its time. A seed always gives the same ids. */
  #newId(): string {
    this.#ids += 1;
    const at = this.#time.now().toString(16).padStart(12, '0');
    return `${at.slice(0, 8)}-${at.slice(8)}-7000-8000-${this.#ids.toString(16).padStart(12, '0')}`;
  }
}
