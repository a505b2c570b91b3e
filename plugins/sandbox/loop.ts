import type { Logger } from 'pino';
import { describeFault } from '../../core/thrown';

/** Does the work again and again with a pause between; what fails is logged once and tried again. Answers what ends it. */
export function startLoop(name: string, everyMs: number, work: () => Promise<void>, log: Logger): () => Promise<void> {
  let stopped = false;
  let endPause = () => {};
  const run = async () => {
    let failing = false;
    while (!stopped) {
      try {
        await work();
        failing = false;
      } catch (error) {
        if (!failing) log.error({ loop: name, error: describeFault(error) }, 'a loop of the sandboxes fails');
        failing = true;
      }
      if (stopped) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, everyMs);
        endPause = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  };
  const running = run();
  return async () => {
    stopped = true;
    endPause();
    await running;
  };
}
