const NAME_WIDTH = 12;
const BEAT_MS = 5_000;
const LINE_WIDTH = 100;

/** Prints one line about a step. */
export function tell(step: string, text: string): void {
  process.stdout.write(`  ${step.padEnd(NAME_WIDTH)}${text}\n`);
}

/**
 * Runs a step and prints how long it took. While it runs, it prints every 5 s the time and the newest line that the step has
 * reported.
 */
export async function timed(step: string, work: (report: (line: string) => void) => Promise<unknown>): Promise<void> {
  const begunMs = performance.now();
  const seconds = () => `${Math.round((performance.now() - begunMs) / 1_000)} s`;
  let newest = '';
  const beat = setInterval(() => tell(step, `${seconds()}  ${newest.slice(0, LINE_WIDTH)}`), BEAT_MS);
  try {
    await work((line) => {
      newest = line;
    });
  } finally {
    clearInterval(beat);
  }
  tell(step, `done in ${seconds()}`);
}
