import type { Knex } from 'knex';
import { startGuardian } from '../../core/ledger/guardian';
import type { LeaseTimes } from '../../core/ledger/lease-times';
import { startLeases } from '../../core/ledger/leases';
import { type Ledger, LedgerUnavailable } from '../../core/ledger/ledger';
import { startShipper } from '../../core/ledger/outbox/shipper';
import { createSettler } from '../../core/ledger/settler';
import { openSpool } from '../../core/ledger/spool/spool';
import { quiet } from '../support/databases';
import type { Random } from '../support/random';
import type { SimulatedDatabase } from './database';
import type { SimulatedSpoolFolder } from './spool-folder';

/** One in this many operations fails before it runs, and one in as many after it. */
const FAILS_ONE_IN = 25;

export interface World {
  /** Returns the current ledger. */
  readonly ledger: () => Ledger;
  readonly database: SimulatedDatabase;
  readonly random: Random;
  readonly times: LeaseTimes;
  /** The shards with accounts. */
  readonly shards: ReadonlySet<number>;
  /** While it is bad, answers are late or lost, and processes crash. */
  readonly weather: { isBad: boolean };
}

/**
 * A process of the gateway with the real settler, spool, leases, shipper and guardian. Every effect on the outside goes through its gate: there time
 * passes, answers are lost, and the process may crash, before or after the operation.
 */
export class SimulatedProcess {
  readonly settler;
  readonly leases;
  readonly ledger: Ledger;
  readonly #shipper;
  readonly #spool;
  readonly #guardian;
  readonly #random: Random;
  readonly #weather: World['weather'];
  #die: () => void = () => undefined;
  /** The number of operations until the crash. The last one may still run, but its answer is lost. */
  #operationsLeft: number;

  constructor(world: World, disk: SimulatedSpoolFolder, operationsLeft: number) {
    const { ledger, database, random, weather, shards, times } = world;
    this.#random = random;
    this.#weather = weather;
    this.#operationsLeft = operationsLeft;
    this.ledger = this.#flaky(ledger, shards);
    const connected: Knex = database.connect(
      (work) => this.#pass(work, () => new Error('the connection was lost')),
      () => this.isDead,
    );
    const stores = { ledger: this.ledger, database: connected, log: quiet };
    this.#guardian = startGuardian(stores);
    this.#shipper = startShipper({ ...stores, onWritten: (rids) => this.#spool.written(rids) });
    this.#spool = openSpool({ ...stores, shipper: this.#shipper, folder: disk.open(), times });
    const { giveUpAfterMs } = times;
    this.settler = createSettler({
      ledger: this.ledger,
      shipper: this.#shipper,
      log: quiet,
      spool: this.#spool,
      giveUpAfterMs,
    });
    this.leases = startLeases({ ledger: this.ledger, calls: this.ledger, log: quiet, times });
  }

  /** Resolves when the process crashes. */
  readonly died = new Promise<void>((resolve) => {
    this.#die = resolve;
  });

  get isDead(): boolean {
    return this.#operationsLeft <= 0;
  }

  /** Stops everything in the order of a SIGTERM. */
  async stop(): Promise<void> {
    await this.settler.stop();
    await this.leases.stop();
    await this.#guardian.stop();
    await this.#shipper.stop();
    await this.#spool.stop();
  }

  #flaky(ledger: () => Ledger, shards: ReadonlySet<number>): Ledger {
    const failure = () => new LedgerUnavailable('simulated');
    const ask = (name: string | symbol, args: readonly unknown[]) => {
      const there = ledger();
      return Reflect.apply(Reflect.get(there, name), there, args) as unknown;
    };
    const due = (all: readonly number[], limit: number) =>
      // Queries only shards with accounts, because most of the 256 are empty.
      this.#pass(() => ask('due', [all.filter((shard) => shards.has(shard)), limit]), failure);
    return new Proxy({ due } as unknown as Ledger, {
      get: (known, name) =>
        Reflect.get(known, name) ?? ((...args: unknown[]) => this.#pass(() => ask(name, args), failure)),
    });
  }

  async #pass<T>(work: () => T | Promise<T>, failure: () => Error): Promise<T> {
    if (this.isDead) return forever();
    if (this.#weather.isBad) this.#operationsLeft -= 1;
    // The last operation runs in half of the cases.
    const isLast = this.isDead;
    if (isLast) this.#die();
    const chance = this.#weather.isBad ? this.#random.below(FAILS_ONE_IN) : FAILS_ONE_IN;
    if (isLast && this.#random.below(2) === 0) return forever();
    const waitMs = this.#random.below(8) === 0 ? this.#random.below(400) : 0;
    if (waitMs > 0) await new Promise((wake) => setTimeout(wake, waitMs));
    if (this.isDead && !isLast) return forever();
    // A dead process receives no answer, not even a failure, because it would continue beside its replacement.
    if (chance === 0 && !isLast) throw failure();
    const done = await work();
    if (isLast) return forever();
    if (chance === 1) throw failure();
    return done;
  }
}

function forever<T>(): Promise<T> {
  return new Promise<T>(() => undefined);
}
