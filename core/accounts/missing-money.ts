import { type ErrorOptions, fail, type GatewayError } from '../base/errors';
import { formatUsd } from '../base/money';
import type { MoneyMissing } from '../ledger/ledger';

/** After how many seconds a client may repeat a call that would count one more tag. Values leave an hour after their last call. */
const TAGS_RETRY_SECONDS = 60;

/** Returns the error for a hold whose tags the ledger does not count. */
export function refusedTags(outcome: 'too_many_limited_tags' | 'too_many_tags'): GatewayError {
  if (outcome === 'too_many_limited_tags') return fail('TOO_MANY_LIMITED_TAGS');
  return fail('TOO_MANY_TAGS', { retryAfterSeconds: TAGS_RETRY_SECONDS });
}

/** Returns the error for a hold that the balance or a limit does not cover. `requiredE8` is the smallest hold that would serve, in E8. */
export function missingMoney(
  answer: MoneyMissing,
  requiredE8: bigint,
  messages: { readonly balance?: string; readonly limit?: string } = {},
): GatewayError {
  const amounts = { requiredUsd: formatUsd(requiredE8), availableUsd: formatUsd(answer.availableE8) };
  if (answer.outcome === 'insufficient_balance')
    return fail('INSUFFICIENT_BALANCE', withMessage(messages.balance, amounts));
  const { kind, name, window, limitE8, spentE8, heldE8, resetsAtMs } = answer.limit;
  if (kind === 'key') return fail('KEY_LIMIT_EXCEEDED', withMessage(messages.limit, amounts));
  return fail('BUDGET_EXCEEDED', {
    details: {
      ...{ scope: kind, name, window },
      ...{ limitUsd: formatUsd(limitE8), spentUsd: formatUsd(spentE8), heldUsd: formatUsd(heldE8) },
      resetsAt: resetsAtMs === undefined ? null : new Date(resetsAtMs).toISOString(),
    },
  });
}

function withMessage(message: string | undefined, details: Record<string, string>): ErrorOptions {
  return message === undefined ? { details } : { message, details };
}
