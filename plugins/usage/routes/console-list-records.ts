import type { Route } from '../../../core/api/route';
import { contentTag } from '../../../core/http/etag';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { pageOf as pageShape } from '../../../core/http/shape';
import { filterReaders, listRecords, type Parts } from '../query';
import { RECORD, toRecord } from '../record';

export function consoleListRecordsRoute(gateway: Parts): Route {
  const listQuery = { ...filterReaders(gateway), ...PAGE_READERS };
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/usage',
    summary: "Usage records of the account, newest first; the page asks again with the answer's tag.",
    query: listQuery,
    headers: { 'If-None-Match': 'The `ETag` of the answer that the page has.' },
    answers: {
      200: { description: 'A page of records.', schema: pageShape(RECORD), headers: { ETag: 'For `If-None-Match`.' } },
      304: { description: 'Nothing has changed.' },
    },
    handle: async ({ accountId, query }, request, response) => {
      const filters = readQuery(query, listQuery);
      const own = { ...filters, account: accountId };
      const page = await listRecords(gateway.database, own, pageOf(filters), toRecord);
      const etag = contentTag(JSON.stringify(page));
      if (request.headers['if-none-match'] !== etag) return sendJson(response, 200, page, { etag });
      response.writeHead(304, { etag });
      response.end();
    },
  };
}
