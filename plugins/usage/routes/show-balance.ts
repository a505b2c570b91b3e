import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http/http';
import { object, orNull, shape } from '../../../core/http/shape';
import type { Calls } from '../../../core/ledger/ledger';
import { formatUsd } from '../../../core/money';

export function showBalanceRoute(calls: Calls): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/balance',
    summary: "The account's balance, and what this key has spent of its limit.",
    answers: { 200: { description: 'The balance.', schema: BALANCE } },
    handle: async ({ key }, _request, response) => {
      const payer = { accountId: key.accountId, keyId: key.keyId };
      const [account, state] = await Promise.all([calls.readAccount(payer.accountId), calls.readKey(payer)]);
      if (account === undefined || state === undefined) throw fail('INVALID_API_KEY');
      sendJson(response, 200, {
        balanceUsd: formatUsd(account.postedE8),
        heldUsd: formatUsd(account.heldE8),
        availableUsd: formatUsd(account.availableE8),
        key: {
          balanceLimit: state.limitE8 === undefined ? null : formatUsd(state.limitE8),
          spentUsd: formatUsd(state.spentE8),
          heldUsd: formatUsd(state.heldE8),
        },
      });
    },
  };
}

const BALANCE = object({
  balanceUsd: shape.usd,
  heldUsd: shape.usd,
  availableUsd: shape.usd,
  key: object({ balanceLimit: orNull(shape.usd), spentUsd: shape.usd, heldUsd: shape.usd }),
});
