/**
 * Does the work again and again with a pause between; answers what ends it, after the work that is under way. A failure is told to
 * `whenFailed` and ends nothing.
 */
export function startLoop(
  work: () => Promise<void>,
  everyMs: number,
  whenFailed: (error: unknown) => void,
): () => Promise<void> {
  let stopped = false;
  let wake = () => {};
  const run = async () => {
    while (!stopped) {
      await work().catch(whenFailed);
      if (stopped) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, everyMs).unref();
      });
    }
  };
  const running = run();
  return async () => {
    stopped = true;
    wake();
    await running;
  };
}

/** A loop that tells the first failure, and not the next ones until it has worked again. */
export function startToldLoop(
  work: () => Promise<void>,
  everyMs: number,
  tell: (error: unknown) => void,
): () => Promise<void> {
  let failing = false;
  const workAgain = async () => {
    await work();
    failing = false;
  };
  return startLoop(workAgain, everyMs, (error) => {
    if (!failing) tell(error);
    failing = true;
  });
}
