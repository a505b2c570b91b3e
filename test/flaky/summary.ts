import type { Round } from './round';

export interface Summary {
  readonly rounds: number;
  /** The number of rounds without a failure. */
  readonly green: number;
  /** The number of passed tests in all rounds. */
  readonly passed: number;
  readonly medianSeconds: number;
  readonly failed: readonly { readonly title: string; readonly times: number; readonly messages: readonly string[] }[];
}

/** Counts the failures, the most frequent first. */
export function summarize(rounds: readonly Round[]): Summary {
  const failures = rounds.flatMap((round) => round.failures);
  const titles = [...new Set(failures.map(({ title }) => title))];
  const failed = titles.map((title) => {
    const own = failures.filter((failure) => failure.title === title);
    return { title, times: own.length, messages: [...new Set(own.map(({ message }) => message))] };
  });
  const seconds = rounds.map((round) => round.seconds).sort((a, b) => a - b);
  return {
    rounds: rounds.length,
    green: rounds.filter((round) => round.failures.length === 0).length,
    passed: rounds.reduce((sum, { passed }) => sum + passed, 0),
    medianSeconds: seconds[Math.floor(seconds.length / 2)] ?? 0,
    failed: failed.sort((a, b) => b.times - a.times),
  };
}

/** Prints one line for all rounds, then two for each failed test. */
export function table({ rounds, green, passed, medianSeconds, failed }: Summary): string {
  const lines = [`${green} of ${rounds} rounds green, ${passed} tests passed, median ${medianSeconds} s a round`];
  for (const { title, times, messages } of failed) {
    lines.push(`${String(times).padStart(4)} x  ${title}`, ...messages.map((message) => `        ${message}`));
  }
  return `${lines.join('\n')}\n`;
}
