import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { readQuery } from '../../../core/http/query';
import { filterReaders, type Parts } from '../query';
import { readTotals, TOTALS } from '../summary';

export function showTotalsRoute(gateway: Parts): Route {
  const filterQuery = filterReaders(gateway);
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/usage/totals',
    summary: 'Totals of the usage records that match the filters.',
    query: filterQuery,
    answers: { 200: { description: 'The totals.', schema: TOTALS } },
    handle: async ({ accountId, query }, _request, response) => {
      const filters = readQuery(query, filterQuery);
      sendJson(response, 200, await readTotals(gateway.database, { ...filters, account: accountId }));
    },
  };
}
