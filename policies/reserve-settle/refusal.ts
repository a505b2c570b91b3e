import { rateLimited } from '../../core/accounts/identify';
import { fail, type GatewayError } from '../../core/errors';
import { INTENTS_AT_MOST, type ReserveOutcome } from '../../core/ledger/ledger';
import { formatUsd } from '../../core/money';
import { IDEMPOTENCY_HEADER } from './intent';

/** After how many seconds a client may repeat a call whose first call still runs. SDKs retry twice. */
const ASK_AGAIN_SECONDS = 5;

type Refused = Exclude<ReserveOutcome, { outcome: 'reserved' }>;

/** Returns the error for a refused hold. `requiredE8` is the least amount that would have been held. */
export function refusalOf(outcome: Refused, requiredE8: bigint): GatewayError {
  switch (outcome.outcome) {
    case 'unknown_key':
    case 'revoked':
    case 'unknown_account':
      return fail('INVALID_API_KEY');
    case 'frozen':
      return fail('FORBIDDEN', { message: 'This account is frozen. Ask the operator of the gateway.' });
    case 'insufficient_balance':
      return fail('INSUFFICIENT_BALANCE', { details: amounts(requiredE8, outcome.availableE8) });
    case 'key_limit_exceeded':
      return fail('KEY_LIMIT_EXCEEDED', { details: amounts(requiredE8, outcome.availableE8) });
    case 'intent_conflict':
      return fail('IDEMPOTENCY_CONFLICT', {
        param: IDEMPOTENCY_HEADER,
        message: 'This Idempotency-Key was already used with another body or address. Use a new key for a new request.',
        details: { requestId: outcome.requestId },
      });
    case 'intent_open':
      return fail('IDEMPOTENCY_KEY_IN_USE', {
        details: { requestId: outcome.requestId },
        retryAfterSeconds: ASK_AGAIN_SECONDS,
      });
    case 'intent_charged':
      return fail('ALREADY_CHARGED', {
        details: { requestId: outcome.requestId, costUsd: formatUsd(outcome.chargedE8) },
      });
    case 'too_many_intents':
      return fail('CONCURRENCY_LIMIT', {
        message: 'The account has too many running calls with an Idempotency-Key. Retry later.',
        details: { of: 'idempotency keys', limit: INTENTS_AT_MOST },
        retryAfterSeconds: ASK_AGAIN_SECONDS,
      });
    case 'rate_limited':
      return rateLimited(outcome.retryAfterMs);
    case 'not_ready':
    case 'stale_key':
      return fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 1 });
    default:
      return fail('INTERNAL_ERROR', {
        cause: new Error(`the ledger answered a new reservation with ${outcome.outcome}`),
      });
  }
}

function amounts(requiredE8: bigint, availableE8: bigint): Record<string, string> {
  return { requiredUsd: formatUsd(requiredE8), availableUsd: formatUsd(availableE8) };
}
