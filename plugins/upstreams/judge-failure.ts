import type { UpstreamFailure, Verdict } from '../../core/catalog/upstream';
import { asObject, asText } from '../../core/json-values';
import { isTooLong } from '../../core/protocols/error-words';

/**
 * Decides what a failure means; docs/contract.md, section 5. The first check that fits decides. The platform's own account is out
 * of credit: never shown as the customer's fault. The call does not fit this model. The vendor rejects this content. Otherwise the
 * status decides.
 */
export function judgeFailure(failure: UpstreamFailure): Verdict {
  const reason = readReason(failure.body);
  if (isOutOfCredit(reason)) return 'next';
  if (isTooLong(reason) && mayBeTheCall(failure.status)) return 'larger-context';
  if (reason.isFlagged || CONTENT_FILTER.has(reason.code) || CONTENT_FILTER.has(reason.type)) return 'relay';
  // The error event came before any content, so another upstream can still answer.
  if (failure.status < 300) return 'next';
  return failure.status >= 500 || ASK_NEXT.has(failure.status) ? 'next' : 'relay';
}

const ASK_NEXT = new Set([401, 402, 403, 404, 408, 409, 425, 429]);

interface Reason {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  /** Whether moderation flagged the input, as OpenRouter reports with 403. */
  readonly isFlagged: boolean;
}

/** Reads `{"error":{"type","code","message"}}` of both protocols, and the bare forms that some upstreams send. */
function readReason(body: unknown): Reason {
  const outer = asObject(body) ?? {};
  const error = asObject(outer['error']) ?? outer;
  const inner = asObject(error['innererror']) ?? {};
  return {
    type: asText(error['type']),
    code: asText(inner['code']) || asText(error['code']),
    isFlagged: asText(asObject(error['metadata'])?.['flagged_input']) !== '',
    message: (asText(error['message']) || asText(outer['error'])).slice(0, MAX_MESSAGE_CHARACTERS),
  };
}

/** How much of a message is searched. A message may quote the client's request, but the reason is at its beginning. */
const MAX_MESSAGE_CHARACTERS = 1_000;

const OUT_OF_CREDIT = new Set([
  'insufficient_quota',
  'insufficient_balance',
  'insufficient_credits',
  'insufficient_funds',
  'billing_error',
  'billing_not_active',
  'billing_hard_limit_reached',
  'credit_balance_too_low',
  'payment_required',
]);
const OUT_OF_CREDIT_MESSAGE =
  /credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds|quota)|exceeded your current quota|out of credits?/i;

function isOutOfCredit(reason: Reason): boolean {
  return OUT_OF_CREDIT.has(reason.code) || OUT_OF_CREDIT.has(reason.type) || OUT_OF_CREDIT_MESSAGE.test(reason.message);
}

/**
 * Tells whether a failure with this status can mean that the call is too long. 200 is the status of an error event. A 5xx or 429
 * that mentions the context is still about the upstream.
 */
function mayBeTheCall(status: number): boolean {
  return status < 300 || status === 400 || status === 413 || status === 422;
}

const CONTENT_FILTER = new Set([
  'content_filter',
  'content_filter_error',
  'content_policy_violation',
  'moderation_blocked',
  'ResponsibleAIPolicyViolation',
]);
