import { readAccount } from '../../core/accounts';
import { sessionRoute } from '../../core/console-route';
import { showUsd } from '../../core/fields';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { readQuery } from '../../core/query';
import { readSpending } from '../../core/spending';
import { readTimeZone } from '../../core/time-zones';
import { showCatalog } from './catalog';

const READERS = { timeZone: readTimeZone };

export function overviewRoute(gateway: Pick<Gateway, 'ledger' | 'database' | 'catalog' | 'health'>): Route {
  return sessionRoute('GET', '/overview', async ({ accountId, query }, request, response) => {
    const { timeZone = 'UTC' } = readQuery(query, READERS);
    const [{ money }, spend] = await Promise.all([
      readAccount(gateway, accountId),
      readSpending(gateway.database, accountId, timeZone),
    ]);
    sendJson(response, 200, {
      balanceUsd: showUsd(money?.postedE8),
      heldUsd: showUsd(money?.heldE8),
      availableUsd: showUsd(money?.availableE8),
      timeZone,
      spend,
      ...showCatalog(gateway, request),
    });
  });
}
