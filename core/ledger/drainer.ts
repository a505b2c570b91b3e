import { type DrainOptions, drainShards, findWaiting, SteppedBack } from './drain';
import { ALL_SHARDS, shardOf } from './shard';

/** Moves the outboxes to Postgres while the process runs. */
export interface Drainer {
  /** Something was written for this account: its shard is drained within about 100 ms. */
  nudge(accountId: string): void;
  /** Drains once more and ends. What cannot be drained now stays in the ledger; the embedded one is gone with its process. */
  stop(): Promise<void>;
  /** Age of the oldest entry at the last look, which is about a second old. */
  oldestAgeMs(): number;
}

/** The same, told of shards by another thread. */
export interface ShardDrainer extends Drainer {
  nudgeShard(shard: number): void;
}

export interface DrainerOptions extends DrainOptions {
  /** How long nudges are collected; who tells of them may have done so. */
  readonly collectMs?: number;
}

/** Long enough to collect what comes together, short enough for a record to be found soon after its call. */
export const COLLECT_MS = 75;
const SWEEP_EVERY_MS = 1_000;
const LONGEST_PAUSE_MS = 5_000;

export function startDrainer(options: DrainerOptions): ShardDrainer {
  const { ledger, log, collectMs = COLLECT_MS } = options;
  const nudged = new Set<number>();
  let wake: (() => void) | undefined;
  let stopped = false;
  let failures = 0;
  let sweptAt = Number.NEGATIVE_INFINITY;
  let oldestAt: number | undefined;

  /** Ends with the pause's time, or collectMs after a nudge; a failure's pause is not cut short. */
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref();
      wake = () => {
        wake = undefined;
        clearTimeout(timer);
        if (stopped) resolve();
        else setTimeout(resolve, collectMs);
      };
      if (stopped || (failures === 0 && nudged.size > 0)) wake();
    });

  const sweep = async () => {
    const waiting = await findWaiting(ledger);
    sweptAt = performance.now();
    oldestAt = smallest([...waiting.values()].flatMap((head) => head.map(({ id }) => Number.parseInt(id, 10))));
    for (const shard of waiting.keys()) nudged.add(shard);
  };

  const pass = async () => {
    if (performance.now() - sweptAt > SWEEP_EVERY_MS - collectMs) await sweep();
    const shards = [...nudged];
    nudged.clear();
    try {
      await drainShards(options, shards);
    } catch (error) {
      for (const shard of shards) nudged.add(shard);
      // Whoever looks after the ledger finds it shut, and compares it with Postgres.
      if (error instanceof SteppedBack) await ledger.shut();
      throw error;
    }
  };

  const run = async () => {
    while (!stopped) {
      try {
        await pass();
        if (failures > 0) log.info('the ledger is being drained again');
        failures = 0;
      } catch (error) {
        if (failures === 0) log.error({ reason: String(error) }, 'the ledger cannot be drained; entries wait');
        failures += 1;
      }
      await pause(failures === 0 ? SWEEP_EVERY_MS : Math.min(100 * 2 ** failures, LONGEST_PAUSE_MS));
    }
  };
  const running = run();

  const nudgeShard = (shard: number) => {
    nudged.add(shard);
    if (failures === 0) wake?.();
  };

  return {
    nudge: (accountId) => nudgeShard(shardOf(accountId)),
    nudgeShard,
    stop: async () => {
      stopped = true;
      wake?.();
      await running;
      await drainShards(options, ALL_SHARDS).catch((error) => {
        log.error({ reason: String(error) }, 'the ledger could not be drained at the end; entries wait');
      });
    },
    oldestAgeMs: () => (oldestAt === undefined ? 0 : Math.max(0, Date.now() - oldestAt)),
  };
}

function smallest(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : Math.min(...times);
}
