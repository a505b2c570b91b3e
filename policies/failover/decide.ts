import type { AttemptOutcome } from '../../core/call';
import type { Verdict } from '../../core/upstream';

/** How an attempt that did not answer ended. */
export interface Failure {
  readonly outcome: AttemptOutcome;
  readonly status: number | undefined;
  /** What the adapter makes of an answer that is not a success; `next` where there was none. */
  readonly verdict: Verdict;
  readonly retryAfterMs: number | undefined;
}

export interface Situation {
  readonly attemptsLeft: number;
  /** Candidates that have not been asked yet. */
  readonly candidatesLeft: number;
  readonly retriesLeft: number;
}

export type Decision =
  | { readonly do: 'relay'; readonly why: string }
  | { readonly do: 'next'; readonly why: string; readonly largerContextOnly: boolean }
  | { readonly do: 'retry'; readonly why: string; readonly afterMs: number }
  | { readonly do: 'give-up'; readonly why: string };

const LONGEST_WAIT_MS = 2_000;
const WAIT_WITHOUT_HINT_MS = 100;

/** What to do about a failed attempt. Pure; a reason per branch. */
export function decide(failure: Failure, situation: Situation): Decision {
  if (failure.verdict === 'relay')
    return { do: 'relay', why: 'the request itself is at fault: every upstream would say the same' };
  if (failure.outcome === 'cancelled') return { do: 'give-up', why: 'the client has left' };
  const largerContextOnly = failure.verdict === 'larger-context';
  if (situation.attemptsLeft === 0 && largerContextOnly) {
    return { do: 'relay', why: 'the call is too long, and no further attempts are allowed' };
  }
  if (situation.attemptsLeft === 0) return { do: 'give-up', why: 'no further attempts are allowed' };
  if (situation.candidatesLeft > 0) return { do: 'next', why: 'another candidate can answer', largerContextOnly };
  if (largerContextOnly) return { do: 'relay', why: 'no candidate has a larger context' };
  if (failure.outcome === 'timeout') return { do: 'give-up', why: 'who stayed silent is not asked again' };
  if (situation.retriesLeft === 0) return { do: 'give-up', why: 'the last candidate has had its retries' };
  if (failure.outcome === 'status' && !isWorthRepeating(failure.status)) {
    return { do: 'give-up', why: 'the same upstream would give the same answer' };
  }
  const afterMs = failure.retryAfterMs ?? WAIT_WITHOUT_HINT_MS;
  if (afterMs > LONGEST_WAIT_MS)
    return { do: 'give-up', why: 'the upstream asks for a longer wait than a caller should have' };
  return { do: 'retry', why: 'no other candidate is left', afterMs };
}

function isWorthRepeating(status: number | undefined): boolean {
  return status === undefined || status === 408 || status === 425 || status === 429 || status >= 500;
}
