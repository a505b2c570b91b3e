import type { AccountRoute } from '../../../core/api/route';
import { readQuery } from '../../../core/http/query';
import { shape } from '../../../core/http/shape';
import { sendCsv } from '../export';
import { filterReaders, type Parts } from '../query';
import { RECORD_COLUMNS, toRecord } from '../record';

export function exportRecordsRoute(gateway: Parts): AccountRoute {
  const filterQuery = filterReaders(gateway);
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/usage.csv',
    summary: 'The same records as a CSV file.',
    query: filterQuery,
    answers: {
      200: { description: 'A line for each record, newest first.', schema: shape.text, mediaType: 'text/csv' },
    },
    handle: async ({ accountId, query }, _request, response) => {
      const own = { ...readQuery(query, filterQuery), account: accountId };
      await sendCsv(response, gateway.database, own, RECORD_COLUMNS, toRecord);
    },
  };
}
