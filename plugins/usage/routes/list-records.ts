import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { pageOf as pageShape } from '../../../core/http/shape';
import { filterReaders, listRecords, type Parts } from '../query';
import { RECORD, toRecord } from '../record';

/** Lists the records of the key's own account, and of no other. */
export function listRecordsRoute(gateway: Parts): Route {
  const listQuery = { ...filterReaders(gateway), ...PAGE_READERS };
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/usage',
    summary: "Usage records of the key's account, newest first.",
    query: listQuery,
    answers: { 200: { description: 'A page of records.', schema: pageShape(RECORD) } },
    handle: async ({ accountId, query }, _request, response) => {
      const filters = readQuery(query, listQuery);
      const own = { ...filters, account: accountId };
      sendJson(response, 200, await listRecords(gateway.database, own, pageOf(filters), toRecord));
    },
  };
}
