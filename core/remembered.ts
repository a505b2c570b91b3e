/** Wraps work whose result is good for a while: all calls meanwhile, also while the work is under way, get the same result. */
export function remembered<T>(
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
