/** What the process (watchdog.ts) and the watchdog thread share. */

/** The indexes of the numbers in the shared memory. */
export const BEAT = 0;
export const OWNER = 1;
export const BOUND_MS = 2;
export const EVERY_MS = 3;

/** What the watchdog thread receives at its start. Later changes reach it as messages. */
export interface WatchdogInput {
  readonly shared: Int32Array;
  readonly owners: readonly string[];
}

export type ToWatchdog = { readonly owner: string } | { readonly plugin: string; readonly folder: string } | 'busy';

/** What the watchdog thread reports to the process when the event loop runs again after a block. */
export interface LoopBlock {
  readonly by: string;
  readonly blockedMs: number;
}
