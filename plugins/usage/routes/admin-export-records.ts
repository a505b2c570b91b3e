import type { Route } from '../../../core/api/route';
import { readQuery, readUuid } from '../../../core/http/query';
import { shape } from '../../../core/http/shape';
import { sendCsv } from '../export';
import { filterReaders, type Parts } from '../query';
import { OPERATOR_COLUMNS, RECORD_COLUMNS, toRecordOfAccount } from '../record';

export function adminExportRecordsRoute(gateway: Parts): Route {
  const filterQuery = { ...filterReaders(gateway), account: readUuid };
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/usage.csv',
    summary: 'The same records as a CSV file.',
    query: filterQuery,
    answers: {
      200: { description: 'A line for each record, newest first.', schema: shape.text, mediaType: 'text/csv' },
    },
    handle: async ({ query }, _request, response) => {
      const filters = readQuery(query, filterQuery);
      const columns = [...RECORD_COLUMNS, ...OPERATOR_COLUMNS];
      await sendCsv(response, gateway.database, filters, columns, toRecordOfAccount);
    },
  };
}
