import { isDatabaseUnavailable } from './database-availability';
import type { Stop } from './resources';

export interface Loop {
  /** Ends the pause, or skips the next one if the work is running. */
  readonly wake: () => void;
  /** Ends the loop after the running work. */
  readonly stop: Stop;
}

interface LoopOptions {
  /** The pause after the work in milliseconds, or a function that returns it then. */
  readonly everyMs: Pause;
  readonly firstAfterMs?: number;
  /** The least pause while the process rests. Such loops end their pauses together, and run at once when the rest ends. */
  readonly atRestMs?: Pause;
  /** How long after `wake` the pause ends, in milliseconds, so that several wakes count once; 0 by default. */
  readonly collectMs?: number;
  /** Gets the error, and how many times in a row the work has failed. The loop continues. */
  readonly whenFailed: (error: unknown, times: number) => void;
}

/** The loops that pause longer while the process rests: it has served nothing for a while, so changes may be seen later. */
const resting = new Set<() => void>();
let isResting = false;
const WAKE_AFTER_MS = 50;

/** Lets the loops of an idle process pause longer from now on. */
export function beginRest(): void {
  isResting = true;
}

/** Runs the loops that paused longer, soon after the request that ends the rest, and lets them pause as usual. */
export function endRest(): void {
  if (!isResting) return;
  isResting = false;
  setTimeout(() => {
    for (const wake of resting) wake();
  }, WAKE_AFTER_MS).unref();
}

/** Loops at rest end their pauses at multiples of this, so that they wake the process together. */
const REST_STEP_MS = 5_000;

/** Timers run up to a few milliseconds early, which must not count as a whole step. */
const EARLY_MS = 50;

/** Returns the pause at rest: until the last step within `ms` from now. A pause shorter than a step stays as it is. */
export function pauseAtRest(ms: number, nowMs: number): number {
  if (ms < REST_STEP_MS) return ms;
  return Math.floor((nowMs + ms + EARLY_MS) / REST_STEP_MS) * REST_STEP_MS - nowMs;
}

type Pause = number | (() => number);

function msOf(pause: Pause): number {
  return typeof pause === 'number' ? pause : pause();
}

/**
 * Repeats the work with a pause between the runs. The loop aborts the signal when it stops. A run that fails discards the wakes
 * that came meanwhile, so that they do not shorten its pause.
 */
export function startLoop(
  work: (signal: AbortSignal) => Promise<unknown>,
  { everyMs, firstAfterMs = 0, atRestMs = 0, collectMs = 0, whenFailed }: LoopOptions,
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
      const usualMs = msOf(everyMs);
      const restMs = msOf(atRestMs);
      await pause(isResting && restMs >= usualMs ? pauseAtRest(restMs, performance.now()) : usualMs);
    }
  };
  const running = run();

  const wake = () => {
    isWoken = true;
    endPause();
  };
  if (atRestMs !== 0) resting.add(wake);
  return {
    wake,
    stop: async () => {
      resting.delete(wake);
      stopping.abort();
      endPause();
      await running;
    },
  };
}

/** Reports the first failure in a row and none of the following. An outage of the database is logged once for all loops (core/base/database-availability.ts). */
export function onFirstFailure(log: (error: unknown) => void): LoopOptions['whenFailed'] {
  return (error, times) => {
    if (times === 1 && !isDatabaseUnavailable(error)) log(error);
  };
}
