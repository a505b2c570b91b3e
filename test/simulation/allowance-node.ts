import { AllowanceLedger } from '../../core/ledger/allowances/allowance-ledger';
import type { AllowanceStore } from '../../core/ledger/allowances/allowance-store';
import { startGuardian } from '../../core/ledger/guardian';
import type { LeaseTimes } from '../../core/ledger/lease-times';
import { startLeases } from '../../core/ledger/leases';
import { type Ledger, LedgerUnavailable, type OutboxEntry } from '../../core/ledger/ledger';
import { startShipper } from '../../core/ledger/outbox/shipper';
import type { ScriptAnswer } from '../../core/ledger/redis/connection';
import { Recalls } from '../../core/ledger/redis/recalls';
import { createSettler } from '../../core/ledger/settler';
import { openSpool } from '../../core/ledger/spool/spool';
import type { Opening, SpoolLine } from '../../core/ledger/spool/spool-file';
import { quiet } from '../support/databases';
import { type ModelLedger, Recalling } from '../support/model-ledger';
import type { Random } from '../support/random';
import type { SimulatedDatabase } from './database';
import type { SimulatedSpoolFolder } from './spool-folder';
import type { Machine, VirtualTime } from './virtual-time';

type Store = Ledger & AllowanceStore;

export interface Network {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly database: SimulatedDatabase;
  readonly shards: ReadonlySet<number>;
  readonly times: LeaseTimes;
  readonly recallWaitMs: number;
  /** While it is bad, messages are lost, late or arrive twice, and nodes crash. */
  readonly weather: { isBad: boolean };
  /** Runs work at the ledger of all nodes, one piece after the other. */
  atStore<T>(work: (store: ModelLedger) => Promise<T>): Promise<T>;
  /** Publishes an event, which other nodes may or may not receive. */
  publish(accountId: string): void;
  admitted(node: AllowanceNode, call: Opening): void;
}

/** Operations that change nothing if they arrive a second time, or later. */
const REPEATABLE: ReadonlySet<string> = new Set(['grant', 'report', 'reserve', 'settle', 'release']);
/** Operations that wait for money that nodes hold. */
const WANTING: ReadonlySet<string> = new Set(['reserve', 'settle', 'renew', 'roll', 'credit']);

/**
 * A node with the production code between its calls and the ledger: allowances, spool, settler, leases, shipper and guardian. Every effect on the
 * outside is a message: during it time passes, it may be lost, and the node may crash.
 */
export class AllowanceNode {
  readonly machine: Machine;
  /** The calls of this node, and the ledger that all nodes share. */
  readonly ledger: AllowanceLedger;
  readonly shared: Store;
  readonly settler;
  readonly leases;
  readonly #network: Network;
  readonly #shipper;
  readonly #spool;
  readonly #guardian;
  #listener: (accountId: string) => void = () => undefined;
  #messagesLeft: number;
  /** The time until which all messages of the node are slow. */
  slowUntil = 0;
  #die: () => void = () => undefined;

  /** Resolves when the node crashes. */
  readonly died = new Promise<void>((resolve) => {
    this.#die = resolve;
  });

  constructor(network: Network, machine: Machine, disk: SimulatedSpoolFolder, messagesLeft: number) {
    this.machine = machine;
    const { database: shared, times } = network;
    this.#network = network;
    this.#messagesLeft = messagesLeft;
    const store = this.#client();
    this.shared = store;
    const database = shared.connect(
      (work) =>
        this.#send(
          '',
          async () => work(),
          () => new Error('the connection was lost'),
        ),
      () => this.machine.isDead,
    );
    const stores = { ledger: store, database, log: quiet };
    this.#guardian = startGuardian(stores);
    this.#shipper = startShipper({ ...stores, onWritten: (rids) => this.#spool.written(rids) });
    const allowances = { store, has: (generation: string): boolean => this.ledger.has(generation) };
    this.#spool = openSpool({ ...stores, allowances, shipper: this.#shipper, folder: disk.open(), times });
    const spool = {
      ...this.#spool,
      keep: (line: SpoolLine) => {
        const kept = this.#spool.keep(line);
        if (line.kind === 'open') network.admitted(this, line);
        return kept;
      },
    };
    const nudge = (accountId: string) => this.#shipper.nudge(accountId);
    this.ledger = new AllowanceLedger({ inner: store, spool, log: quiet, nudge, isHot: () => true });
    const { giveUpAfterMs } = times;
    const settling = { ledger: this.ledger, shipper: this.#shipper, spool: this.#spool, log: quiet, giveUpAfterMs };
    this.settler = createSettler(settling);
    this.leases = startLeases({ calls: this.ledger, ledger: store, log: quiet, times });
  }

  get isDead(): boolean {
    return this.machine.isDead;
  }

  hear(accountId: string): void {
    this.#listener(accountId);
  }

  /** Stops everything in the order of a SIGTERM. */
  async stop(): Promise<void> {
    await this.settler.stop();
    await this.leases.stop();
    await this.#guardian.stop();
    await this.ledger.stop();
    await this.#shipper.stop();
    await this.#spool.stop();
  }

  /** Replaces `RedisLedger`: sends a message for each operation, and waits for recalled money. */
  #client(): Store {
    const { shards, database, recallWaitMs, publish, atStore } = this.#network;
    const lost = () => new LedgerUnavailable('simulated');
    const ask = <T>(name: string, work: (store: ModelLedger) => Promise<T>) =>
      this.#send(name, () => atStore(work), lost);
    const countLive = (accountId: string, scope: string) =>
      ask('recall', async (store) => store.countLive(accountId, scope));
    const recalls = new Recalls({ waitMs: recallWaitMs, publish, countLive });
    const plain = (name: string, args: unknown[]) =>
      ask(name, async (store) => Reflect.apply(Reflect.get(store, name), store, args) as unknown);
    const orRecalling = (name: string, args: unknown[]) =>
      plain(name, args).catch((error: unknown) => {
        if (error instanceof Recalling) return undefined;
        throw error;
      });
    const known: Partial<Store> = {
      setAccount: async (accountId, status) => {
        const done = ask('', (store) => store.setAccount(accountId, status).then(() => true));
        await done.catch((error) =>
          error instanceof Recalling ? recalls.allBack(accountId, `a:${accountId}`) : Promise.reject(error),
        );
      },
      setKey: async (request) => {
        const { accountId, keyId } = request;
        const done = ask('', (store) => store.setKey(request).then(() => true));
        await done.catch((error) =>
          error instanceof Recalling ? recalls.allBack(accountId, `k:${keyId}`) : Promise.reject(error),
        );
      },
      setScope: async (request) => {
        const { accountId } = request;
        const done = ask('', (store) => store.setScope(request).then(() => true));
        await done.catch((error) =>
          error instanceof Recalling ? recalls.allBack(accountId, `a:${accountId}`) : Promise.reject(error),
        );
      },
      recall: publish,
      onRecall: (listener) => {
        this.#listener = listener;
      },
      // Queries only shards with accounts, because most of the 256 are empty.
      due: (all, limit) =>
        ask('', (store) =>
          store.due(
            all.filter((shard) => shards.has(shard)),
            limit,
          ),
        ),
      readOutbox: async (all, limit) => {
        const found = await ask('', async (store) => store.readOutbox(all, limit));
        const entries: readonly OutboxEntry[] = [...found.values()].flat();
        for (const entry of entries) database.read(entry);
        return found;
      },
    };
    return new Proxy(known as Store, {
      get: (those, name: string) =>
        Reflect.get(those, name) ??
        (async (...args: [{ accountId: string }]) => {
          if (!WANTING.has(name)) return plain(name, args);
          let done: unknown;
          const again = async (): Promise<ScriptAnswer> => {
            done = await orRecalling(name, args);
            return [done === undefined ? 'recalling' : 'done'];
          };
          const first = await again();
          if (first[0] === 'recalling') await recalls.whileRecalling(args[0].accountId, first, again);
          return done;
        }),
    });
  }

  /** Sends a message and receives its answer. With its last message the node crashes, before or after the operation. */
  #send<T>(name: string, work: () => Promise<T>, lost: () => Error): Promise<T> {
    const { time, random, weather } = this.#network;
    const { machine } = this;
    if (machine.isDead) return new Promise(() => undefined);
    const isBad = weather.isBad;
    if (isBad) this.#messagesLeft -= 1;
    const isLast = this.#messagesLeft <= 0;
    const fate = isBad ? random.below(60) : 60;
    const slow = () =>
      isBad && (time.now() < this.slowUntil || random.below(20) === 0) ? random.below(2_600) : 1 + random.below(3);
    if (isLast) {
      time.kill(machine);
      this.#die();
      if (random.below(2) === 0) return new Promise(() => undefined);
    }
    return new Promise((resolve, reject) => {
      const back = (answer: () => void, ms: number) => time.as(machine, () => setTimeout(answer, ms));
      const arrive = () => {
        if (fate === 0) return back(() => reject(lost()), 200);
        work().then(
          (done) => back(() => (fate === 1 ? reject(lost()) : resolve(done)), fate === 1 ? 200 : slow()),
          (error) => back(() => reject(error), slow()),
        );
        if (fate === 2 && REPEATABLE.has(name))
          time.as(undefined, () => setTimeout(() => void work().catch(() => undefined), 1 + random.below(3_000)));
      };
      time.as(undefined, () => setTimeout(arrive, slow()));
    });
  }
}
