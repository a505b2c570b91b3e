import { isDatabaseUnavailable } from './database-reach';
import type { Stop } from './resources';

export interface Loop {
  /** Ends the pause, or the next one if the work is under way. */
  readonly wake: () => void;
  /** Ends the loop after the work that is under way. */
  readonly stop: Stop;
}

export interface LoopOptions {
  /** The pause after the work, or what returns it then, in milliseconds. */
  readonly everyMs: number | (() => number);
  /** The pause before the first work, in milliseconds; 0 by default. */
  readonly firstAfterMs?: number;
  /** How long after `wake` the pause ends, in milliseconds, so that wakes that come together count once; 0 by default. */
  readonly collectMs?: number;
  /** Gets the error, and how many times in a row the work has failed. A failure does not end the loop. */
  readonly whenFailed: (error: unknown, times: number) => void;
}

/**
 * Does the work again and again with a pause between. The signal is aborted when the loop is to end. Work that fails forgets the
 * wakes that came meanwhile: its pause is never cut short by what it could not do.
 */
export function startLoop(
  work: (signal: AbortSignal) => Promise<unknown>,
  { everyMs, firstAfterMs = 0, collectMs = 0, whenFailed }: LoopOptions,
): Loop {
  const stopping = new AbortController();
  let isWoken = false;
  let endPause = () => {};

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      if (stopping.signal.aborted) return resolve();
      const timer = setTimeout(resolve, isWoken ? Math.min(ms, collectMs) : ms).unref();
      endPause = () => {
        clearTimeout(timer);
        if (stopping.signal.aborted || collectMs === 0) resolve();
        else setTimeout(resolve, collectMs).unref();
        endPause = () => {};
      };
    });

  const run = async () => {
    if (firstAfterMs > 0) await pause(firstAfterMs);
    let failures = 0;
    while (!stopping.signal.aborted) {
      isWoken = false;
      try {
        await work(stopping.signal);
        failures = 0;
      } catch (error) {
        failures += 1;
        isWoken = false;
        whenFailed(error, failures);
      }
      await pause(typeof everyMs === 'number' ? everyMs : everyMs());
    }
  };
  const running = run();

  return {
    wake: () => {
      isWoken = true;
      endPause();
    },
    stop: async () => {
      stopping.abort();
      endPause();
      await running;
    },
  };
}

/**
 * Tells the first failure of a row and not the next ones. An outage of the database is told once for all loops
 * (core/database-reach.ts).
 */
export function tellFirst(tell: (error: unknown) => void): LoopOptions['whenFailed'] {
  return (error, times) => {
    if (times === 1 && !isDatabaseUnavailable(error)) tell(error);
  };
}
