import { Failure, UsageError } from './failure';
import type { Output } from './output';

export interface Question {
  readonly question: string;
  /** What to do instead if no terminal can ask. */
  readonly otherwise: string;
  readonly declined: string;
}

/** Returns if the operator answers yes. @throws UsageError without a terminal, Failure for any other answer */
export async function confirm(
  { ask }: Pick<Output, 'ask'>,
  { question, otherwise, declined }: Question,
): Promise<void> {
  if (ask === undefined) throw new UsageError(`this is not a terminal, so no confirmation is possible: ${otherwise}`);
  const answer = await ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure(declined);
}
