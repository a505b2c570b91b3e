/** Prepares work on this many entries. Only the returned function is measured. */
export type Work = (entries: number) => () => void;

/** Below this cost a ratio says nothing. */
const MIN_MS = 200;
const FEWEST = 50;
const MORE = 8;
const TRIES = 3;

/**
 * Returns how many times the CPU of `n` entries the work on `8 n` takes, the best of three tries; linear work takes 8 times. It
 * chooses `n` such that `8 n` costs at least 200 ms; undefined if even `most` entries cost less. The process should have
 * `--expose-gc`, so that no run pays for the garbage of another.
 * @param enough a ratio that ends the tries
 */
export function cpuGrowth(work: Work, most: number, enough: number): number | undefined {
  let entries = FEWEST;
  let ms = cpuMsOf(work, entries * MORE);
  while (ms < MIN_MS && entries * MORE < most) {
    // Work that is not linear would take minutes after a larger step.
    const factor = Math.min(Math.max((MIN_MS * 1.2) / Math.max(ms, 1), 1.2), 5);
    entries = Math.min(Math.ceil(entries * factor), Math.ceil(most / MORE));
    ms = cpuMsOf(work, entries * MORE);
  }
  if (ms < MIN_MS) return undefined;
  let best = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && best > enough; tries += 1) {
    if (tries > 0) ms = cpuMsOf(work, entries * MORE);
    best = Math.min(best, ms / cpuMsOf(work, entries));
  }
  return best;
}

/** Returns the process's own CPU for one run. */
function cpuMsOf(work: Work, entries: number): number {
  const run = work(entries);
  globalThis.gc?.();
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
