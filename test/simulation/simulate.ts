import assert from 'node:assert/strict';
import { leaseTimes } from '../../core/ledger/lease-times';
import type { Payer } from '../../core/ledger/ledger';
import { MemoryLedger } from '../../core/ledger/memory-ledger';
import { shardOf } from '../../core/ledger/shard';
import { type Random, seeded } from '../support/random';
import { SimulatedDatabase } from './database';
import { SimulatedProcess } from './process';
import { installVirtualTime, type VirtualTime } from './virtual-time';

const START_MS = Date.UTC(2026, 0, 1);
const PROCESSES = 2;
const CALLS = 10;
const LEASE_MS = leaseTimes().leaseMs;
const HOLD_E8 = 100n;

export interface Simulated {
  readonly settled: number;
  readonly crashes: number;
  readonly entries: number;
}

/** Everything of one seed: the same seed is the same story, to the last answer that is lost. */
export async function simulate(seed: number): Promise<Simulated> {
  const time = installVirtualTime(START_MS);
  try {
    return await new Story(seed, time).tell();
  } finally {
    time.restore();
  }
}

class Story {
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #ledger = new MemoryLedger({ now: Date.now });
  readonly #database = new SimulatedDatabase();
  readonly #payers: Payer[] = [];
  readonly #processes: SimulatedProcess[] = [];
  /** What a caller was told that it was charged, in time. */
  readonly #told = new Map<string, bigint>();
  readonly #weather = { isBad: true };
  readonly #shards = new Set<number>();
  #ids = 0;
  #crashes = 0;

  constructor(seed: number, time: VirtualTime) {
    this.#time = time;
    this.#random = seeded(seed);
  }

  async tell(): Promise<Simulated> {
    await this.#prepare();
    const calls = this.#processes.flatMap((_, index) => Array.from({ length: CALLS }, () => this.#call(index)));
    let done = false;
    void Promise.all(calls).then(() => {
      done = true;
    });
    await this.#time.run(20 * 60_000, () => done);
    this.#weather.isBad = false;
    // Leases of dead processes end, and what waits is drained.
    await this.#time.run(LEASE_MS + 120_000);
    for (const each of this.#processes) void each.stop();
    await this.#time.run(30_000);
    await this.#drainTheRest();
    await this.#assertWhole();
    return { settled: this.#told.size, crashes: this.#crashes, entries: this.#database.entries.size };
  }

  async #prepare(): Promise<void> {
    await this.#ledger.open();
    for (let each = 0; each < 2; each += 1) {
      const payer = { accountId: this.#newId(), keyId: this.#newId() };
      this.#payers.push(payer);
      this.#shards.add(shardOf(payer.accountId));
      await this.#ledger.setAccount(payer.accountId, 'active');
      await this.#ledger.setKey({
        ...{ ...payer, hash: payer.keyId, status: 'active', limitE8: each === 0 ? undefined : 700n },
        settings: { rev: 0, name: 'key', allowedModels: undefined },
      });
      await this.#ledger.credit({ accountId: payer.accountId, rid: this.#newId(), amountE8: 1_500n });
    }
    for (let each = 0; each < PROCESSES; each += 1) this.#processes.push(this.#newProcess(each === 0));
  }

  #newProcess(willDie: boolean): SimulatedProcess {
    const life = willDie ? 1 + this.#random.below(700) : Number.MAX_SAFE_INTEGER;
    const world = {
      ledger: this.#ledger,
      database: this.#database,
      random: this.#random,
      weather: this.#weather,
      shards: this.#shards,
    };
    return new SimulatedProcess(world, life);
  }

  async #call(index: number): Promise<void> {
    await this.#pause(this.#random.below(20_000));
    const process = this.#alive(index);
    // What a process that died was doing never ends.
    await Promise.race([this.#callOn(process), process.died]);
  }

  async #callOn(process: SimulatedProcess): Promise<void> {
    const payer = this.#random.pick(this.#payers);
    const rid = this.#newId();
    const record = (billing: string) => JSON.stringify({ requestId: `req-${rid}`, billing });
    const request = { ...payer, rid, amountE8: HOLD_E8, keyRev: 0, lifetimeMs: LEASE_MS, record: record('expired') };
    try {
      const { outcome } = await process.ledger.reserve(request);
      if (outcome !== 'reserved') return;
    } catch {
      await process.settler.release({ ...payer, rid, record: record('released') });
      return;
    }
    process.leases.track(payer, rid);
    // Most calls are short; some are longer than their lease.
    await this.#pause(this.#random.below(5) === 0 ? this.#random.below(150_000) : this.#random.below(3_000));
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
    const next = this.#newProcess(this.#random.below(2) === 0);
    this.#processes[index] = next;
    return next;
  }

  /** A process that was stopped in order leaves nothing; one that died last leaves it to the next that starts. */
  async #drainTheRest(): Promise<void> {
    for (let attempt = 0; attempt < 50; attempt += 1) {
      if (this.#ledger.snapshot().outbox.length === 0) return;
      const last = this.#newProcess(false);
      await this.#time.run(10_000);
      void last.stop();
      await this.#time.run(10_000);
    }
  }

  async #assertWhole(): Promise<void> {
    const { entries, records } = this.#database;
    assert.equal(this.#ledger.snapshot().outbox.length, 0, 'everything is drained');
    const closings = [...entries.values()].filter(({ kind }) => kind !== 'credit');
    assert.equal(new Set(closings.map(({ rid }) => rid)).size, closings.length, 'closed twice');
    for (const [rid, chargedE8] of this.#told) {
      const entry = closings.find((each) => each.rid === rid);
      assert.equal(entry?.amountE8, String(-chargedE8), `told ${chargedE8} for ${rid}`);
    }
    const byRid = new Map([...records.values()].map((record) => [record.rid, record]));
    assert.equal(records.size, closings.length, 'one record per closed reservation');
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

  /** Shaped as a UUIDv7, with the time in it; the same for the same seed. */
  #newId(): string {
    this.#ids += 1;
    const at = this.#time.now().toString(16).padStart(12, '0');
    return `${at.slice(0, 8)}-${at.slice(8)}-7000-8000-${this.#ids.toString(16).padStart(12, '0')}`;
  }
}
