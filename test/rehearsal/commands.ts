import { type Checkout, runIn } from './checkout';
import type { Options } from './options';
import { runQuickstart } from './quickstart';
import type { Outcome } from './report';

/** What a run does in its checkout. */
export interface Command {
  readonly name: string;
  readonly withinMs: number;
  readonly run: (at: Checkout, signal: AbortSignal) => Promise<Outcome>;
}

const MINUTES = 60_000;

const COMMANDS: Readonly<Record<'quickstart' | 'test' | 'ci', Command>> = {
  quickstart: { name: 'npm run quickstart', withinMs: 20 * MINUTES, run: runQuickstart },
  test: { name: 'npm test', withinMs: 90 * MINUTES, run: (at, signal) => runIn(at, ['npm', 'test'], signal) },
  ci: { name: '.ci/run', withinMs: 120 * MINUTES, run: (at, signal) => runIn(at, ['bash', '.ci/run'], signal) },
};

export function commandsFor({ ci, only }: Options): readonly Command[] {
  if (ci) return [COMMANDS.ci];
  return only === undefined ? [COMMANDS.quickstart, COMMANDS.test] : [COMMANDS[only]];
}
