/** Returns a function that caches the result of `work` for some time. All callers in that time get the same result, even while the work is running. */
export function cacheFor<T>(
  forMs: number,
  work: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let last: { readonly begunMs: number; readonly result: Promise<T> } | undefined;
  return () => {
    if (last === undefined || now() - last.begunMs >= forMs) last = { begunMs: now(), result: work() };
    return last.result;
  };
}
