import assert from 'node:assert/strict';
import { leaseTimes } from '../../core/ledger/lease-times';
import type { Payer } from '../../core/ledger/ledger';
import { MemoryLedger } from '../../core/ledger/memory-ledger';
import { shardOf } from '../../core/ledger/shard';
import { type Random, seeded } from '../support/random';
import { SimulatedDatabase } from './database';
import { SimulatedProcess } from './process';
import { SimulatedSpoolFolder } from './spool-folder';
import { installVirtualTime, type VirtualTime } from './virtual-time';

const START_MS = Date.UTC(2026, 0, 1);
const PROCESSES = 2;
const CALLS = 10;
/** The virtual time within which all settlements and entries must be complete. */
const PATIENCE_MS = 20 * 60_000;
/** The times of production, with the shortest lease. */
const TIMES = { ...leaseTimes(5), sweepEveryMs: 1_000, spoolEveryMs: 500 };
const { leaseMs } = TIMES;
const HOLD_E8 = 100n;

export interface Simulated {
  readonly settled: number;
  readonly crashes: number;
  /** How often the ledger was emptied. */
  readonly losses: number;
  /** Calls that were refused because another one had their Idempotency-Key. */
  readonly repeated: number;
  readonly entries: number;
}

/** Simulates the seeds from the first to the last. @throws with the seed that fails */
export async function simulateSeeds(first: number, last: number): Promise<void> {
  for (let seed = first; seed <= last; seed += 1) {
    await simulate(seed).catch((cause) => {
      throw new Error(`seed ${seed}; repeat it with npm run simulation -- --from ${seed} --seeds 1`, { cause });
    });
  }
}

/** Simulates one seed. The same seed always gives the same events, down to the last lost answer. */
export async function simulate(seed: number): Promise<Simulated> {
  const time = installVirtualTime(START_MS);
  const { stackTraceLimit } = Error;
  // Switches stack traces off, because in bad weather every lost answer is an error.
  Error.stackTraceLimit = 0;
  try {
    return await new Story(seed, time).tell();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    time.restore();
  }
}

/** A ledger that shows at once whether it answers. */
class VisibleLedger extends MemoryLedger {
  override isOpen = false;
}

class Story {
  readonly #time: VirtualTime;
  readonly #random: Random;
  #ledger = new VisibleLedger({ now: Date.now });
  readonly #database = new SimulatedDatabase();
  readonly #payers: Payer[] = [];
  readonly #processes: SimulatedProcess[] = [];
  /** One disk for each process and its replacements. */
  readonly #disks = Array.from({ length: PROCESSES }, () => new SimulatedSpoolFolder());
  /** The charges that callers were told in time. */
  readonly #told = new Map<string, bigint>();
  /** Account and Idempotency-Key of the calls that had one, by reservation. */
  readonly #keyed = new Map<string, string>();
  #repeated = 0;
  readonly #weather = { isBad: true };
  readonly #shards = new Set<number>();
  #ids = 0;
  #crashes = 0;
  #losses = 0;

  constructor(seed: number, time: VirtualTime) {
    this.#time = time;
    this.#random = seeded(seed);
  }

  async tell(): Promise<Simulated> {
    await this.#prepare();
    const work = this.#processes.flatMap((_, index) => Array.from({ length: CALLS }, () => this.#call(index)));
    if (this.#random.below(2) === 0) work.push(this.#loseLedger());
    await this.#until('all calls have ended', Promise.all(work));
    this.#weather.isBad = false;
    // Restarts dead processes, so that old leases end and waiting entries are shipped.
    for (const index of this.#processes.keys()) this.#alive(index);
    await this.#time.run(PATIENCE_MS, () => this.#isAtRest());
    await this.#until('all processes have stopped', Promise.all(this.#processes.map((each) => each.stop())));
    await this.#assertWhole();
    const { size: settled } = this.#told;
    const { size: entries } = this.#database.entries;
    return { settled, crashes: this.#crashes, losses: this.#losses, repeated: this.#repeated, entries };
  }

  async #prepare(): Promise<void> {
    await this.#ledger.open();
    for (let each = 0; each < 2; each += 1) {
      const payer = { accountId: this.#newId(), keyId: this.#newId() };
      const limitE8 = each === 0 ? undefined : 700n;
      const [creditRid, creditE8] = [this.#newId(), 1_500n];
      this.#payers.push(payer);
      this.#shards.add(shardOf(payer.accountId));
      this.#database.accounts.push({ ...payer, limitE8, creditRid, creditE8 });
      await this.#ledger.setAccount(payer.accountId, 'active');
      await this.#ledger.setKey({
        ...payer,
        hash: payer.keyId,
        status: 'active',
        limitE8,
        settings: { rev: 0, name: 'key', allowedModels: undefined },
      });
      await this.#ledger.credit({ accountId: payer.accountId, rid: creditRid, amountE8: creditE8 });
    }
    for (let each = 0; each < PROCESSES; each += 1)
      this.#processes.push(this.#newProcess(each, each === 0 || this.#random.below(2) === 0));
  }

  /** Empties the ledger once or twice, as FLUSHALL does. It rejects calls until it is filled again. */
  async #loseLedger(): Promise<void> {
    for (let times = 1 + this.#random.below(2); times > 0; times -= 1) {
      await this.#pause(this.#random.below(6_000));
      this.#ledger = new VisibleLedger({ now: Date.now });
      this.#losses += 1;
    }
  }

  #newProcess(index: number, willDie: boolean): SimulatedProcess {
    const life = willDie ? 1 + this.#random.below(300) : Number.MAX_SAFE_INTEGER;
    const disk = this.#disks[index] as SimulatedSpoolFolder;
    const world = {
      ledger: () => this.#ledger,
      database: this.#database,
      random: this.#random,
      weather: this.#weather,
      shards: this.#shards,
      times: TIMES,
    };
    return new SimulatedProcess(world, disk, life);
  }

  async #call(index: number): Promise<void> {
    await this.#pause(this.#random.below(4_000));
    const process = this.#alive(index);
    // Work of a process that crashed never ends.
    await Promise.race([this.#callOn(process), process.died]);
  }

  async #callOn(process: SimulatedProcess): Promise<void> {
    const payer = this.#random.pick(this.#payers);
    const rid = this.#newId();
    const requestId = `req-${rid}`;
    const intent = this.#random.below(2) === 0 ? undefined : { key: `key-${this.#random.below(2)}`, body: 'body' };
    const record = (billing: string) => JSON.stringify({ requestId, billing, ...(intent && { routing: { intent } }) });
    const request = {
      ...payer,
      rid,
      amountE8: HOLD_E8,
      keyRev: 0,
      lifetimeMs: leaseMs,
      facts: record('expired'),
      intent: intent && { ...intent, requestId },
    };
    if (intent !== undefined) this.#keyed.set(rid, `${payer.accountId} ${intent.key}`);
    try {
      const { outcome } = await process.ledger.reserve(request);
      if (outcome.startsWith('intent_')) this.#repeated += 1;
      if (outcome !== 'reserved') return;
    } catch {
      await process.settler.release({ ...payer, rid, record: record('released') });
      return;
    }
    process.leases.track(payer, rid, HOLD_E8);
    // Most calls are short; some are longer than their lease.
    await this.#pause(this.#random.below(5) === 0 ? this.#random.below(leaseMs * 1.25) : this.#random.below(1_500));
    if (process.isDead) return;
    process.leases.untrack(rid);
    if (this.#random.below(5) === 0)
      return void (await process.settler.release({ ...payer, rid, record: record('released') }));
    const costE8 = BigInt(this.#random.below(130));
    const settled = await process.settler.settle({ ...payer, rid, costE8, record: record('actual') });
    if (settled.inTime && settled.chargedE8 > 0n) this.#told.set(rid, settled.chargedE8);
  }

  #alive(index: number): SimulatedProcess {
    const process = this.#processes[index];
    if (process !== undefined && !process.isDead) return process;
    this.#crashes += 1;
    const next = this.#newProcess(index, this.#random.below(2) === 0);
    this.#processes[index] = next;
    return next;
  }

  async #until(what: string, work: Promise<unknown>): Promise<void> {
    let done = false;
    void work.then(() => {
      done = true;
    });
    await this.#time.run(PATIENCE_MS, () => done);
    assert.ok(done, what);
  }

  /** Returns whether nothing is held and nothing waits to be written or sent, credits for a lost ledger included. */
  #isAtRest(): boolean {
    if (!this.#ledger.isOpen || !this.#disks.every(({ isEmpty }) => isEmpty)) return false;
    const { accounts, entries } = this.#database;
    if ([...entries.values()].filter(({ kind }) => kind === 'credit').length < accounts.length) return false;
    const { outbox, reservations } = this.#ledger.snapshot();
    return outbox.length === 0 && ![...reservations.values()].some(({ state }) => state === 'open');
  }

  async #assertWhole(): Promise<void> {
    const { entries, records } = this.#database;
    assert.equal(this.#ledger.snapshot().outbox.length, 0, 'everything is shipped');
    assert.ok(
      this.#disks.every(({ isEmpty }) => isEmpty),
      'nothing waits on a disk',
    );
    const closings = [...entries.values()].filter(({ kind }) => kind !== 'credit');
    assert.equal(new Set(closings.map(({ rid }) => rid)).size, closings.length, 'closed twice');
    const chargedKeys = closings.flatMap(({ rid, amountE8 }) => (amountE8 === '0' ? [] : (this.#keyed.get(rid) ?? [])));
    assert.equal(new Set(chargedKeys).size, chargedKeys.length, 'two charges for one Idempotency-Key');
    for (const [rid, chargedE8] of this.#told) {
      const entry = closings.find((each) => each.rid === rid);
      const charged = 0n - BigInt(entry?.amountE8 ?? 0);
      const shortE8 = BigInt(entry?.shortfallE8 ?? 0);
      // After a loss, a charge is repeated from the remaining balance; the platform loses the rest.
      const isShort = this.#losses > 0 && charged < chargedE8 && charged + shortE8 >= chargedE8;
      assert.ok(
        charged === chargedE8 || isShort,
        `told ${chargedE8} for ${rid}, charged ${charged} and ${shortE8} short`,
      );
    }
    const ofReservations = [...records.values()].filter(({ rid }) => rid !== null);
    const byRid = new Map(ofReservations.map((record) => [record.rid, record]));
    assert.equal(ofReservations.length, closings.length, 'one record per closed reservation');
    for (const { rid, costE8 } of records.values())
      assert.ok(rid !== null || costE8 === '0', 'a cost of no reservation');
    for (const { rid, amountE8 } of closings) assert.equal(byRid.get(rid)?.costE8, String(0n - BigInt(amountE8)));
    for (const { accountId, keyId } of this.#payers) await this.#assertAccount(accountId, keyId);
  }

  async #assertAccount(accountId: string, keyId: string): Promise<void> {
    const own = [...this.#database.entries.values()]
      .filter((entry) => entry.accountId === accountId)
      .sort((one, other) => one.seq - other.seq);
    let posted = 0n;
    for (const [index, entry] of own.entries()) {
      posted += BigInt(entry.amountE8);
      assert.deepEqual([entry.seq, entry.postedE8], [index + 1, String(posted)], 'a gap in the chain, or a wrong sum');
    }
    const account = await this.#ledger.readAccount(accountId);
    assert.deepEqual(
      [account?.postedE8, account?.availableE8, account?.heldE8, account?.seq],
      [posted, posted, 0n, own.length],
      'the ledger and the entries differ, or a hold was kept',
    );
    const spentE8 = own.filter(({ kind }) => kind === 'charge').reduce((sum, each) => sum - BigInt(each.amountE8), 0n);
    const key = await this.#ledger.readKey({ accountId, keyId });
    assert.deepEqual([key?.spentE8, key?.heldE8], [spentE8, 0n]);
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
