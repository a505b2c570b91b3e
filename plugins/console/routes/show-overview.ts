import { readAccount } from '../../../core/accounts/accounts';
import { showUsd } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { readQuery } from '../../../core/http/query';
import { listOf, object, orNull, shape } from '../../../core/http/shape';
import { readSpending } from '../../../core/records/spending';
import { readTimeZone } from '../../../core/records/time-zones';
import { CATALOG_FIELDS, showCatalog } from './catalog';

const READERS = { timeZone: readTimeZone };

const SPEND = object({
  todayUsd: shape.usd,
  yesterdayUsd: shape.usd,
  monthUsd: shape.usd,
  lastMonthUsd: shape.usd,
  lastMonthToThisDayUsd: shape.usd,
  days: listOf(
    object({
      day: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d$' },
      callsUsd: shape.usd,
      sandboxesUsd: shape.usd,
      calls: shape.integer,
    }),
  ),
} satisfies Record<keyof Awaited<ReturnType<typeof readSpending>>, object>);

const OVERVIEW = object({
  balanceUsd: orNull(shape.usd),
  heldUsd: orNull(shape.usd),
  availableUsd: orNull(shape.usd),
  timeZone: shape.text,
  spend: SPEND,
  ...CATALOG_FIELDS,
});

export function showOverviewRoute(
  gateway: Pick<PluginGateway, 'ledger' | 'database' | 'catalog' | 'configuration' | 'health'>,
): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/overview',
    summary: 'The balance, spending by day, and the models that can be called.',
    query: READERS,
    answers: {
      200: { description: 'The overview; the amounts are null while the ledger is unavailable.', schema: OVERVIEW },
    },
    handle: async ({ accountId, query }, request, response) => {
      const { timeZone = 'UTC' } = readQuery(query, READERS);
      const [{ money, markup }, spend] = await Promise.all([
        readAccount(gateway, accountId),
        readSpending(gateway.database, accountId, timeZone),
      ]);
      sendJson(response, 200, {
        balanceUsd: showUsd(money?.postedE8),
        heldUsd: showUsd(money?.heldE8),
        availableUsd: showUsd(money?.availableE8),
        timeZone,
        spend,
        ...showCatalog(gateway, request, markup),
      });
    },
  };
}
