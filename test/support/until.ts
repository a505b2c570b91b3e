/** The most that one check with its pause counts, because both take longer on a busy machine. */
const LOOK_MS = 50;
/** The most by which uncounted time extends a short wait. */
const MAX_MS = 30_000;

/** Waits for a condition, never for a time. Fails with the last error or value after `withinMs` of a machine that is not busy. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  withinMs = 30_000,
): Promise<NonNullable<T>> {
  const begunMs = performance.now();
  const maxMs = Math.max(withinMs, Math.min(4 * withinMs, MAX_MS));
  let spentMs = 0;
  let last: unknown;
  for (let lookedMs = begunMs; ; ) {
    try {
      const value = await condition();
      if (value !== undefined && value !== null && value !== false) return value as NonNullable<T>;
      last = value;
    } catch (error) {
      last = error;
    }
    const nowMs = performance.now();
    spentMs += Math.min(nowMs - lookedMs, LOOK_MS);
    lookedMs = nowMs;
    if (spentMs > withinMs || nowMs - begunMs > maxMs)
      throw new Error(`not within ${withinMs} ms: ${what}`, { cause: last });
    await new Promise((wake) => setTimeout(wake, 10));
  }
}

/** Returns whether the promise settles within this time by the process's own timers, which stop when the process does. */
export function settlesWithin(ms: number, promise: PromiseLike<unknown>): Promise<boolean> {
  const settled = Promise.resolve(promise).then(
    () => true,
    () => true,
  );
  const late = new Promise<false>((done) => {
    setTimeout(() => setImmediate(() => setImmediate(done, false)), ms).unref();
  });
  return Promise.race([settled, late]);
}
