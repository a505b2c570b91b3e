/** What the watchdog (watchdog.ts) and its thread share. */

/** The indexes in the shared memory. */
export const BEAT = 0;
export const OWNER = 1;
export const BOUND_MS = 2;
export const EVERY_MS = 3;

/** What the thread gets at its start. It gets later changes as messages. */
export interface WatchdogInput {
  readonly shared: Int32Array;
  readonly owners: readonly string[];
}

export type ToWatchdog = { readonly owner: string } | { readonly plugin: string; readonly folder: string } | 'busy';

/** What the thread reports after the event loop runs again. */
export interface LoopBlock {
  readonly by: string;
  readonly blockedMs: number;
}
