import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery, readUuid } from '../../core/query';
import { pageOf as pageShape, shape } from '../../core/shape';
import { OPERATOR_COLUMNS, RECORD_COLUMNS } from './columns';
import { sendCsv } from './export';
import { filterReaders, findRecord, listRecords } from './query';
import { EXPLAINED_RECORD, toExplainedRecord, toRecordOfAccount } from './record';

/** The same for operators: of every account, or of one with `account=`; each record says whose it is. */
export function adminRoutes(gateway: Pick<Gateway, 'database' | 'catalog'>): Route[] {
  const { database } = gateway;
  const filterQuery = { ...filterReaders(gateway), account: readUuid };
  const listQuery = { ...filterQuery, ...PAGE_READERS };
  return [
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/usage',
      summary: 'Usage records of all accounts, newest first.',
      query: listQuery,
      answers: { 200: { description: 'A page of records.', schema: pageShape(EXPLAINED_RECORD) } },
      handle: async ({ query }, _request, response) => {
        const filters = readQuery(query, listQuery);
        sendJson(response, 200, await listRecords(database, filters, pageOf(filters), toExplainedRecord));
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/usage.csv',
      summary: 'The same records as a CSV file.',
      query: filterQuery,
      answers: {
        200: { description: 'A line for each record, newest first.', schema: shape.text, mediaType: 'text/csv' },
      },
      handle: async ({ query }, _request, response) => {
        const filters = readQuery(query, filterQuery);
        await sendCsv(response, database, filters, [...RECORD_COLUMNS, ...OPERATOR_COLUMNS], toRecordOfAccount);
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/usage/{requestId}',
      summary: 'The usage record of one call of any account.',
      answers: { 200: { description: 'The record.', schema: EXPLAINED_RECORD } },
      handle: async ({ params }, _request, response) => {
        const row = await findRecord(database, params['requestId'] ?? '');
        if (row === undefined) throw fail('NOT_FOUND', { message: 'There is no usage record of this request.' });
        sendJson(response, 200, toExplainedRecord(row));
      },
    },
  ];
}
