/** Wraps work whose result is good for a while: who asks meanwhile, or while it is under way, gets the same one. */
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
