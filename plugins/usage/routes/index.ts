import { FEED, FEED_READERS, feedRequestOf } from '../../../core/api/event-fields';
import { keyRoute } from '../../../core/api/json-routes';
import { asSessionRoute, type Route } from '../../../core/api/route';
import { fail } from '../../../core/base/errors';
import { formatUsd } from '../../../core/base/money';
import { listAccountEvents } from '../../../core/events/feed';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { object, orNull, shape } from '../../../core/http/shape';
import type { Calls } from '../../../core/ledger/ledger';
import { EVERYONE } from '../../../core/sign-in/member-roles';
import { consoleListRecordsRoute, consoleShowRecordRoute, showSeriesRoute } from './console';
import { adminUsageRoutes, exportRecordsRoute, listRecordsRoute, showRecordRoute } from './records';
import { replayRoute } from './replay';
import { totalsRoutes } from './totals';

/** Lists the endpoints of usage; docs/contract.md, sections 1 and 6. */
export function usageRoutes(gateway: PluginGateway): readonly Route[] {
  return [
    showBalanceRoute(gateway.calls),
    listEventsRoute(gateway),
    listRecordsRoute(gateway),
    exportRecordsRoute(gateway),
    ...totalsRoutes(gateway),
    showRecordRoute(gateway),
    ...adminUsageRoutes(gateway),
    replayRoute(gateway),
    consoleListRecordsRoute(gateway),
    showSeriesRoute(gateway),
    asSessionRoute(exportRecordsRoute(gateway), '/console/api/usage.csv', EVERYONE),
    consoleShowRecordRoute(gateway),
  ];
}

function showBalanceRoute(calls: Calls): Route {
  return keyRoute('GET /v1/balance', {
    summary: "The account's balance, and what this key has spent of its limit.",
    answers: { 200: { description: 'The balance.', schema: BALANCE } },
    handle: async ({ key }) => {
      const payer = { accountId: key.accountId, keyId: key.keyId };
      const [account, state] = await Promise.all([calls.readAccount(payer.accountId), calls.readKey(payer)]);
      if (account === undefined || state === undefined) throw fail('INVALID_API_KEY');
      return {
        balanceUsd: formatUsd(account.postedE8),
        heldUsd: formatUsd(account.heldE8),
        availableUsd: formatUsd(account.availableE8),
        key: {
          balanceLimit: state.limitE8 === undefined ? null : formatUsd(state.limitE8),
          spentUsd: formatUsd(state.spentE8),
          heldUsd: formatUsd(state.heldE8),
        },
      };
    },
  });
}

function listEventsRoute({ database }: PluginGateway): Route {
  return keyRoute('GET /v1/events', {
    summary: "The events of the key's account, oldest first; docs/alerts.md.",
    query: FEED_READERS,
    answers: FEED,
    handle: ({ accountId, filters }) => listAccountEvents(database, accountId, feedRequestOf(filters)),
  });
}

const BALANCE = object({
  balanceUsd: shape.usd,
  heldUsd: shape.usd,
  availableUsd: shape.usd,
  key: object({ balanceLimit: orNull(shape.usd), spentUsd: shape.usd, heldUsd: shape.usd }),
});
