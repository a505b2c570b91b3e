import { asObject, asText } from '../../core/base/json-values';
import { errorBody, readUsualError, type UpstreamFailure, type Verdict } from '../../core/catalog/upstream';
import { isTooLong, MAX_SEARCHED } from '../../core/protocols/error-words';

/**
 * Decides what a failure means; docs/contract.md, section 5. The first check that fits decides. The platform's own account is out
 * of credit: never shown as the customer's fault. The call does not fit this model. The vendor rejects this content. Otherwise the
 * status decides.
 */
export function judgeFailure({ body, status }: UpstreamFailure): Verdict {
  const error = readUsualError(body);
  const given = asObject(errorBody(body)['error']);
  const inner = asText(asObject(given?.['innererror'])?.['code']);
  const isNamed = (words: ReadonlySet<string>) => [inner, error.code, error.type].some((word = '') => words.has(word));
  if (isNamed(OUT_OF_CREDIT) || OUT_OF_CREDIT_MESSAGE.test(error.message.slice(0, MAX_SEARCHED))) return 'next';
  if (isTooLong(error) && mayBeTheCall(status)) return 'larger-context';
  // OpenRouter reports with 403 what moderation flagged in the input.
  const isFlagged = asText(asObject(given?.['metadata'])?.['flagged_input']) !== '';
  if (isFlagged || isNamed(CONTENT_FILTER)) return 'relay';
  // The error event came before any content, so another upstream can still answer.
  if (status < 300) return 'next';
  return status >= 500 || ASK_NEXT.has(status) ? 'next' : 'relay';
}

const ASK_NEXT = new Set([401, 402, 403, 404, 408, 409, 425, 429]);

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
