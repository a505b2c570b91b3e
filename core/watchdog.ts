import { url as inspectorUrl } from 'node:inspector';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { metrics } from './metrics';
import type { Stop } from './resources';

/**
 * A thread that notices when the process's event loop is blocked, and logs whose code blocks it. The process itself cannot log
 * anything then. The process increments a number in shared memory and notes there whose code it enters.
 */

/** The indexes in the shared memory. */
export const BEAT = 0;
export const OWNER = 1;
export const BOUND_MS = 2;

const shared = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));

/** How often the process increments the number, which wakes an idle process and the checking thread. */
const BEAT_EVERY_MS = 125;
/** How long the event loop may be blocked before the first client, while modules are loaded and configurations compiled. */
const START_BOUND_MS = 10_000;
const SERVING_BOUND_MS = 500;
/** The bound for a process in a debugger, which stops at breakpoints. */
const NEVER_MS = 2 ** 31 - 1;

/** What the thread gets at its start. It gets later changes as messages. */
export interface Watched {
  readonly shared: Int32Array;
  readonly owners: readonly string[];
}
export type ToWatchdog = { readonly owner: string } | { readonly plugin: string; readonly folder: string };
/** What the thread reports after the event loop runs again. */
export interface Block {
  readonly by: string;
  readonly blockedMs: number;
}

const blockedSeconds = new Counter({
  name: 'tollgate_event_loop_blocked_seconds_total',
  help: 'Time that the event loop was blocked for more than half a second at once, by the plugin, policy or adapter that blocked it.',
  labelNames: ['by'],
  registers: [metrics],
});

/** The owners by number. The first stands for all code without another owner. */
const owners = ['Tollgate'];
let worker: Worker | undefined;

/** Returns the number by which `enter` knows a plugin, policy or adapter. */
export function ownerNumber(owner: string): number {
  const known = owners.indexOf(owner);
  if (known !== -1) return known;
  post({ owner });
  return owners.push(owner) - 1;
}

/** Notes whose code the process enters. Returns the previous owner, which must be entered again afterwards. Costs one load and one store. */
export function enter(owner: number): number {
  const outer = shared[OWNER] as number;
  shared[OWNER] = owner;
  return outer;
}

/** Runs work under the name of its owner. */
export function within<T>(owner: number, work: () => T): T {
  const outer = enter(owner);
  try {
    return work();
  } finally {
    enter(outer);
  }
}

/** Tells the watchdog the folder of a plugin, so that it recognizes the plugin in a stack. */
export function watchPlugin(plugin: string, file: string): void {
  post({ plugin, folder: dirname(file) });
}

export interface Watchdog {
  /** Switches to the shorter bound, because clients are served from now on. */
  serving(): void;
  readonly stop: Stop;
}

/** Starts the watchdog, once per process. */
export function startWatchdog(log: Logger): Watchdog {
  let boundMs = START_BOUND_MS;
  const beat = () => {
    shared[BEAT] = ((shared[BEAT] as number) + 1) | 0;
    shared[BOUND_MS] = inspectorUrl() === undefined ? boundMs : NEVER_MS;
  };
  beat();
  const beats = setInterval(beat, BEAT_EVERY_MS).unref();
  const workerData: Watched = { shared, owners };
  const thread = new Worker(require.resolve('./watchdog-worker'), { workerData, name: 'watchdog' });
  worker = thread;
  thread.on('message', ({ by, blockedMs }: Block) => {
    blockedSeconds.inc({ by }, blockedMs / 1_000);
    log.warn({ by, blockedMs }, 'the event loop was blocked');
  });
  thread.on('error', (reason) =>
    log.error({ reason: String(reason) }, 'the watchdog failed: code that blocks the event loop is no longer reported'),
  );
  return {
    serving: () => {
      boundMs = SERVING_BOUND_MS;
      // The first client may come before the next beat.
      beat();
    },
    stop: async () => {
      clearInterval(beats);
      worker = undefined;
      await thread.terminate();
    },
  };
}

function post(message: ToWatchdog): void {
  worker?.postMessage(message);
}
