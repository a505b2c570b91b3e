import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery, readUuid } from '../../../core/http/query';
import { pageOf as pageShape } from '../../../core/http/shape';
import { filterReaders, listRecords, type Parts } from '../query';
import { EXPLAINED_RECORD, toExplainedRecord } from '../record';

/** Lists records to operators: those of every account, or of one with `account=`. Each record names its account. */
export function adminListRecordsRoute(gateway: Parts): Route {
  const listQuery = { ...filterReaders(gateway), account: readUuid, ...PAGE_READERS };
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/usage',
    summary: 'Usage records of all accounts, newest first.',
    query: listQuery,
    answers: { 200: { description: 'A page of records.', schema: pageShape(EXPLAINED_RECORD) } },
    handle: async ({ query }, _request, response) => {
      const filters = readQuery(query, listQuery);
      sendJson(response, 200, await listRecords(gateway.database, filters, pageOf(filters), toExplainedRecord));
    },
  };
}
