import { url as inspectorUrl } from 'node:inspector';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import { Counter, Histogram } from 'prom-client';
import { beginRest, endRest } from './loop';
import { metrics } from './metrics';
import type { Stop } from './resources';
import type { OpenRequests } from './shutdown';
import {
  BEAT,
  BOUND_MS,
  EVERY_MS,
  type LoopBlock,
  OWNER,
  type ToWatchdog,
  type WatchdogInput,
} from './watchdog-messages';

/**
 * A thread logs when the process's event loop is blocked and whose code blocks it, because the blocked process cannot log. The process
 * increments a number in this shared memory and notes there whose code it enters. The array has four numbers.
 */

const shared = new Int32Array(new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT));

/**
 * How often, in milliseconds, the process increments its heartbeat counter in the shared memory, and how often the watchdog thread checks
 * the counter. Both happen less often in an idle process, because each of them wakes it.
 */
const BUSY_EVERY_MS = 125;
const IDLE_EVERY_MS = 1_000;
const IDLE_AFTER_MS = 5_000;
/** How long the process must have had no open request before its loops pause longer. */
const RESTS_AFTER_MS = 10_000;
/**
 * How many heartbeat intervals must pass without a heartbeat before the event loop counts as blocked. It is above 1, because the timers of
 * the process and the watchdog are not synchronized.
 */
const PAUSES_IN_BOUND = 2.5;
/** How long the event loop may be blocked before the process serves clients, while it loads modules and compiles configurations. */
const START_BOUND_MS = 10_000;
const SERVING_BOUND_MS = 500;
/** How long a block may last while a debugger is attached, which stops at breakpoints. */
const NEVER_MS = 2 ** 31 - 1;

const blockedSeconds = new Counter({
  name: 'tollgate_event_loop_blocked_seconds_total',
  help: 'Time that the event loop was blocked for more than half a second at once, by the plugin, policy or adapter that blocked it.',
  labelNames: ['by'],
  registers: [metrics],
});

const lagSeconds = new Histogram({
  name: 'tollgate_event_loop_lag_seconds',
  help: 'How late a timer of the event loop ran: eight times a second while requests are open, once a second otherwise.',
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  registers: [metrics],
});

/** The names of the owners of code (plugins, policies and adapters) by their number. Number 0 stands for all code that has no other owner. */
const owners = ['Tollgate'];
let worker: Worker | undefined;

/** Returns the number of a plugin, policy or adapter for `enter`. A new one gets the next number. */
export function ownerNumber(owner: string): number {
  const known = owners.indexOf(owner);
  if (known !== -1) return known;
  post({ owner });
  return owners.push(owner) - 1;
}

/**
 * Notes which owner's code (plugin, policy or adapter) the process enters. Returns the previous owner, which the caller must enter again
 * afterwards. Costs one load and one store.
 */
export function enter(owner: number): number {
  const outer = shared[OWNER] as number;
  shared[OWNER] = owner;
  return outer;
}

/** Runs the work of a plugin, policy or adapter while the shared memory names it as the owner of the running code. */
export function within<T>(owner: number, work: () => T): T {
  const outer = enter(owner);
  try {
    return work();
  } finally {
    enter(outer);
  }
}

/** Sends the watchdog the folder of a plugin, so that it recognizes the plugin's code in a stack. */
export function watchPlugin(plugin: string, file: string): void {
  post({ plugin, folder: dirname(file) });
}

interface Watchdog {
  /**
   * Limits how long the event loop may be blocked to a shorter time than at the start, because the process serves clients from now on.
   * While no request is open, background loops pause longer.
   */
  serving(requests: OpenRequests): void;
  readonly stop: Stop;
}

/** Starts the watchdog, once per process. */
export function startWatchdog(log: Logger): Watchdog {
  let boundMs = START_BOUND_MS;
  let requests: OpenRequests | undefined;
  let hasBegun = true;
  let busyAtMs = 0;
  let dueAtMs = performance.now();
  let timer: NodeJS.Timeout;

  const beat = () => {
    const nowMs = performance.now();
    lagSeconds.observe(Math.max(0, nowMs - dueAtMs) / 1_000);
    if (requests === undefined || requests.open > 0 || hasBegun) busyAtMs = nowMs;
    hasBegun = false;
    const everyMs = nowMs - busyAtMs > IDLE_AFTER_MS ? IDLE_EVERY_MS : BUSY_EVERY_MS;
    if (nowMs - busyAtMs > RESTS_AFTER_MS) beginRest();
    shared[BEAT] = ((shared[BEAT] as number) + 1) | 0;
    shared[EVERY_MS] = everyMs;
    shared[BOUND_MS] = inspectorUrl() === undefined ? Math.max(boundMs, PAUSES_IN_BOUND * everyMs) : NEVER_MS;
    dueAtMs = nowMs + everyMs;
    timer = setTimeout(beat, everyMs).unref();
  };
  const beatNow = () => {
    clearTimeout(timer);
    dueAtMs = performance.now();
    beat();
  };
  beat();
  const workerData: WatchdogInput = { shared, owners };
  const thread = new Worker(require.resolve('./watchdog-worker'), { workerData, name: 'watchdog' });
  worker = thread;
  thread.on('message', ({ by, blockedMs }: LoopBlock) => {
    blockedSeconds.inc({ by }, blockedMs / 1_000);
    log.warn({ by, blockedMs }, 'the event loop was blocked');
  });
  thread.on('error', (reason) =>
    log.error({ reason: String(reason) }, 'the watchdog failed: code that blocks the event loop is no longer reported'),
  );
  return {
    serving: (open) => {
      boundMs = SERVING_BOUND_MS;
      requests = open;
      // Applies the watchdog's shorter limit for a block at once, because the first client may arrive before the next heartbeat of the process.
      beatNow();
      open.onBegin(() => {
        hasBegun = true;
        if (shared[EVERY_MS] === BUSY_EVERY_MS) return;
        beatNow();
        post('busy');
        endRest();
      });
    },
    stop: async () => {
      clearTimeout(timer);
      worker = undefined;
      await thread.terminate();
    },
  };
}

function post(message: ToWatchdog): void {
  worker?.postMessage(message);
}
