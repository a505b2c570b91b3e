import type { CallKey } from '../../core/accounts/identify';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway/gateway';
import { askLedger } from '../../core/ledger/unavailable';
import { formatUsd } from '../../core/money';

/**
 * Refuses a call before its large body is read if the customer cannot pay for any call. The hold decides later whether the money
 * covers this call.
 * @throws INSUFFICIENT_BALANCE, KEY_LIMIT_EXCEEDED, FORBIDDEN, INVALID_API_KEY, LEDGER_UNAVAILABLE
 */
export async function requireMoney({ calls }: Pick<Gateway, 'calls'>, payer: CallKey): Promise<void> {
  const [account, key] = await askLedger(() => Promise.all([calls.readAccount(payer.accountId), calls.readKey(payer)]));
  if (account === undefined || key?.status !== 'active') throw fail('INVALID_API_KEY');
  if (account.status === 'frozen')
    throw fail('FORBIDDEN', { message: 'This account is frozen. Ask the operator of the gateway.' });
  if (account.availableE8 <= 0n) throw fail('INSUFFICIENT_BALANCE', { details: available(account.availableE8) });
  if (key.limitE8 === undefined) return;
  const leftE8 = key.limitE8 - key.spentE8 - key.heldE8;
  if (leftE8 <= 0n) throw fail('KEY_LIMIT_EXCEEDED', { details: available(leftE8) });
}

function available(amountE8: bigint) {
  return { availableUsd: formatUsd(amountE8 > 0n ? amountE8 : 0n) };
}
