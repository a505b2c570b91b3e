import { asObject, asText } from '../../core/base/json-values';
import { errorBody, readUsualError, type UpstreamFailure, type Verdict } from '../../core/catalog/upstream';
import { isTooLong, MAX_SEARCHED } from '../../core/protocols/error-words';

/**
 * Decides what an upstream's failure means; docs/contract.md, section 5. It makes these checks in order, and the first match decides. 1.
 * The platform's account is out of credit, which is never reported as the customer's fault. 2. The call does not fit this model. 3. The
 * vendor rejects the content. 4. Otherwise the status decides.
 */
export function judgeFailure({ body, status }: UpstreamFailure): Verdict {
  const error = readUsualError(body);
  const given = asObject(errorBody(body)['error']);
  const inner = asText(asObject(given?.['innererror'])?.['code']);
  const isNamed = (words: ReadonlySet<string>) => [inner, error.code, error.type].some((word = '') => words.has(word));
  if (isNamed(OUT_OF_CREDIT) || OUT_OF_CREDIT_MESSAGE.test(error.message.slice(0, MAX_SEARCHED))) return 'next';
  if (isTooLong(error) && mayBeTheCall(status)) return 'larger-context';
  // OpenRouter answers 403 if moderation flagged the input.
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
 * Returns whether a failure with this status can mean that the call is too long. Status 200 belongs to an error event inside a stream. A
 * 5xx or 429 concerns the upstream, even if its text mentions the context.
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
