import { fail, type GatewayError } from '../../core/base/errors';
import type { Attempt } from '../../core/calls/call';
import type { AttemptFailure } from '../../core/health/health';

/** The result of an attempt without a usable answer. */
export interface JudgedFailure extends AttemptFailure {
  /** Why the call could not be translated for the upstream. The upstream was not tried. */
  readonly refusal?: { readonly param: string; readonly message: string } | undefined;
  /** Whether the upstream probably still works for the call, and charges for it. */
  readonly stillWorks?: boolean;
}

export interface Situation {
  readonly attemptsLeft: number;
  /** How many untried candidates could answer. After the verdict `larger-context`, only candidates with a larger context window count. */
  readonly candidatesLeft: number;
  /** Whether the next candidate has not failed recently, so that trying it does not multiply an outage. */
  readonly isNextHealthy: boolean;
  /** Whether the next candidate answers most attempts, although it may have failed recently. */
  readonly doesNextMostlyAnswer: boolean;
  readonly retriesLeft: number;
  /** Whether the retry budget has attempts left: further attempts are still below 20 % of the calls. */
  readonly budgetLeft: boolean;
}

export type RetryDecision =
  | { readonly do: 'relay'; readonly why: string }
  | { readonly do: 'next'; readonly why: string; readonly spends: boolean }
  | { readonly do: 'retry'; readonly why: string; readonly afterMs: number }
  | { readonly do: 'give-up'; readonly why: string };

const MAX_WAIT_MS = 2_000;
const WAIT_WITHOUT_HINT_MS = 100;

/** Decides what to do about a failed attempt. It is a pure function, and each of its branches gives the reason. */
export function decideNext(failure: JudgedFailure, situation: Situation): RetryDecision {
  if (failure.verdict === 'relay')
    return { do: 'relay', why: 'the request is invalid: every upstream would reject it' };
  if (failure.stillWorks) return { do: 'give-up', why: 'the upstream still works for the call and cannot be stopped' };
  if (failure.outcome === 'cancelled') return { do: 'give-up', why: 'the client has disconnected' };
  if (failure.verdict === 'larger-context') {
    if (situation.candidatesLeft === 0) return { do: 'relay', why: 'no candidate has a larger context' };
    if (situation.attemptsLeft === 0)
      return { do: 'relay', why: 'the call is too long, and no further attempts are allowed' };
  }
  if (situation.attemptsLeft === 0) return { do: 'give-up', why: 'no further attempts are allowed' };
  if (situation.candidatesLeft > 0) return decideStep(situation);
  return decideRetry(failure, situation);
}

function decideStep({ isNextHealthy, doesNextMostlyAnswer, budgetLeft }: Situation): RetryDecision {
  if (isNextHealthy) return { do: 'next', why: 'another candidate can answer', spends: false };
  if (budgetLeft) return { do: 'next', why: 'another candidate may have recovered', spends: true };
  if (doesNextMostlyAnswer) return { do: 'next', why: 'another candidate answers most calls', spends: false };
  return { do: 'give-up', why: 'the remaining candidates failed recently, and the retry budget is used up' };
}

function decideRetry(
  { outcome, status, retryAfterMs }: JudgedFailure,
  { retriesLeft, budgetLeft }: Situation,
): RetryDecision {
  if (outcome === 'not_translatable') return { do: 'give-up', why: 'no remaining upstream supports this call' };
  if (outcome === 'timeout') return { do: 'give-up', why: 'an upstream that did not answer is not retried' };
  if (retriesLeft === 0) return { do: 'give-up', why: 'the last candidate has had its retries' };
  if (outcome === 'status' && !isWorthRepeating(status))
    return { do: 'give-up', why: 'the same upstream would give the same answer' };
  const afterMs = retryAfterMs ?? WAIT_WITHOUT_HINT_MS;
  if (afterMs > MAX_WAIT_MS)
    return { do: 'give-up', why: 'the upstream asks for a longer wait than a caller should bear' };
  if (!budgetLeft) return { do: 'give-up', why: 'the retry budget is used up' };
  return { do: 'retry', why: 'no other candidate is left', afterMs };
}

function isWorthRepeating(status: number | undefined): boolean {
  return status === undefined || status === 408 || status === 425 || status === 429 || status >= 500;
}

const TOO_LONG = 'The answer has more than 64 MB. Send fewer inputs in one call, or ask for base64.';

/** Returns the error for a call that no candidate answered. Which one depends on what all its attempts have in common. */
export function errorOfAll(attempts: readonly Attempt[], failures: readonly JudgedFailure[]): GatewayError {
  const refusal = failures.every(({ outcome }) => outcome === 'not_translatable') ? failures[0]?.refusal : undefined;
  if (refusal !== undefined) return fail('NOT_TRANSLATABLE', refusal);
  const details = { attempts };
  if (attempts.every(({ status }) => status === 429)) {
    const retryAfterSeconds = soonest(failures);
    return fail(
      'UPSTREAM_RATE_LIMITED',
      retryAfterSeconds === undefined ? { details } : { details, retryAfterSeconds },
    );
  }
  if (attempts.every(({ outcome }) => outcome === 'timeout')) return fail('UPSTREAM_TIMEOUT', { details });
  // The gateway cannot relay this answer, because the answer is too long and the gateway stopped reading it.
  if (failures.at(-1)?.verdict === 'relay')
    return fail('ALL_PROVIDERS_FAILED', { details, message: TOO_LONG, retryable: false });
  return fail('ALL_PROVIDERS_FAILED', { details });
}

/** Returns the seconds until the first of the upstreams may answer again; undefined if no upstream stated a time. */
function soonest(failures: readonly JudgedFailure[]): number | undefined {
  const waits = failures.flatMap(({ retryAfterMs }) => (retryAfterMs === undefined ? [] : [retryAfterMs]));
  return waits.length === 0 ? undefined : Math.ceil(Math.min(...waits) / 1_000);
}
