import { isDatabaseUnavailable } from './database-reach';
import type { Stop } from './resources';

export interface Loop {
  /** Ends the pause, or skips the next one if the work is running. */
  readonly wake: () => void;
  /** Ends the loop after the running work. */
  readonly stop: Stop;
}

interface LoopOptions {
  /** The pause after the work in milliseconds, or a function that returns it then. */
  readonly everyMs: number | (() => number);
  readonly firstAfterMs?: number;
  /** How long after `wake` the pause ends, in milliseconds, so that several wakes count once; 0 by default. */
  readonly collectMs?: number;
  /** Gets the error, and how many times in a row the work has failed. The loop continues. */
  readonly whenFailed: (error: unknown, times: number) => void;
}

/**
 * Repeats the work with a pause between the runs. The loop aborts the signal when it stops. A run that fails discards the wakes
 * that came meanwhile, so that they do not shorten its pause.
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

/** Reports the first failure in a row and none of the following. An outage of the database is logged once for all loops (core/database-reach.ts). */
export function onFirstFailure(log: (error: unknown) => void): LoopOptions['whenFailed'] {
  return (error, times) => {
    if (times === 1 && !isDatabaseUnavailable(error)) log(error);
  };
}
