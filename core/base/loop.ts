import { isDatabaseUnavailable } from './database-availability';
import type { Stop } from './resources';

export interface Loop {
  /** Ends the loop's current pause. If the work is running, the loop skips the pause after that run. */
  readonly wake: () => void;
  /** Stops the loop and resolves after the running work has ended. */
  readonly stop: Stop;
}

interface LoopOptions {
  /** The pause after each run in milliseconds, or a function that the loop calls after each run and that returns the pause. */
  readonly everyMs: Pause;
  readonly firstAfterMs?: number;
  /** The minimum pause while the process is idle. Loops with this option end their pauses together, and run at once when the process is busy again. */
  readonly atRestMs?: Pause;
  /** How many milliseconds pass between a call of `wake` and the next run, so that several calls of `wake` cause one run; 0 by default. */
  readonly collectMs?: number;
  /** Receives the error of a failed run, and how many times in a row the work has failed. The loop continues. */
  readonly whenFailed: (error: unknown, times: number) => void;
}

/** The `wake` functions of the loops that pause longer while the process is idle. With longer pauses, an idle process may notice changes later. */
const resting = new Set<() => void>();
let isResting = false;
const WAKE_AFTER_MS = 50;

/** Makes the loops with `atRestMs` pause longer, because the process is idle. */
export function beginRest(): void {
  isResting = true;
}

/** Makes all loops pause as usual, and runs those that paused longer soon after the request that ends the idle time. */
export function endRest(): void {
  if (!isResting) return;
  isResting = false;
  setTimeout(() => {
    for (const wake of resting) wake();
  }, WAKE_AFTER_MS).unref();
}

/** The length of a step. While the process is idle, loops end their pauses at multiples of a step, so that they wake the process together. */
const REST_STEP_MS = 5_000;

/** How many milliseconds early a timer may run. With this margin, a loop whose timer ran early does not wait for another whole step of 5 s. */
const EARLY_MS = 50;

/**
 * Returns how many milliseconds a loop pauses in an idle process. The pause ends at the last multiple of 5 s that is at most `ms` from now.
 * An `ms` below 5 s is returned unchanged.
 */
export function pauseAtRest(ms: number, nowMs: number): number {
  if (ms < REST_STEP_MS) return ms;
  return Math.floor((nowMs + ms + EARLY_MS) / REST_STEP_MS) * REST_STEP_MS - nowMs;
}

type Pause = number | (() => number);

function msOf(pause: Pause): number {
  return typeof pause === 'number' ? pause : pause();
}

/**
 * Repeats the work with a pause between the runs. The loop aborts the signal when it stops. If a run fails, calls of `wake` during that run
 * are ignored, so that they do not shorten the next pause.
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

/** Logs only the first of several failures in a row. It ignores an outage of the database, which core/base/database-availability.ts logs once for all loops. */
export function onFirstFailure(log: (error: unknown) => void): LoopOptions['whenFailed'] {
  return (error, times) => {
    if (times === 1 && !isDatabaseUnavailable(error)) log(error);
  };
}
