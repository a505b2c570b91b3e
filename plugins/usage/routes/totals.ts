import { restrictionOfKey } from '../../../core/accounts/member-keys';
import { adminRoute } from '../../../core/api/json-routes';
import { type AccountRoute, asSessionRoute, type Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { readQuery, readUuid } from '../../../core/http/query';
import { EVERYONE } from '../../../core/sign-in/member-roles';
import { filterReaders, readGroupedBy, type UsageQueryContext } from '../query';
import { readTotals, TOTALS } from '../summary';

const ANSWERS = { 200: { description: 'The totals, with `by` also their groups.', schema: TOTALS } };

/** Lists the endpoints that show totals of usage records: to API keys, to the console and to operators. */
export function totalsRoutes(gateway: UsageQueryContext): readonly Route[] {
  const own = ownTotalsRoute(gateway);
  return [
    own,
    asSessionRoute(own, '/console/api/usage/totals', EVERYONE),
    adminRoute('GET /admin/v1/usage/totals', {
      role: 'read',
      summary: 'Totals of the usage records of all accounts that match the filters.',
      query: { ...filterReaders(gateway), by: readGroupedBy, account: readUuid },
      answers: ANSWERS,
      handle: ({ filters: { by, ...filters } }) => readTotals(gateway.database, filters, by),
    }),
  ];
}

function ownTotalsRoute(gateway: UsageQueryContext): AccountRoute {
  const readers = { ...filterReaders(gateway), by: readGroupedBy };
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/usage/totals',
    summary: 'Totals of the usage records that match the filters.',
    query: readers,
    answers: ANSWERS,
    handle: async ({ accountId, memberId: ownId, key, query }, _request, response) => {
      const memberId = key === undefined ? ownId : await restrictionOfKey(gateway.database, key.keyId);
      const { by, ...filters } = readQuery(query, readers);
      sendJson(response, 200, await readTotals(gateway.database, { ...filters, account: accountId, memberId }, by));
    },
  };
}
