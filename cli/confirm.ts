import { Failure, UsageError } from './failure';
import type { Output } from './output';

export interface Question {
  readonly question: string;
  /** What can be done where there is nobody to ask. */
  readonly otherwise: string;
  readonly declined: string;
}

/** Goes on when a person says yes. @throws UsageError where there is none, Failure for any other answer */
export async function confirm(
  { ask }: Pick<Output, 'ask'>,
  { question, otherwise, declined }: Question,
): Promise<void> {
  if (ask === undefined) throw new UsageError(`this is not a terminal, so no confirmation is possible: ${otherwise}`);
  const answer = await ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure(declined);
}
