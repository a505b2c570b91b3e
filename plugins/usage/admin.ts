import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery, readUuid } from '../../core/query';
import { RECORD_COLUMNS } from './columns';
import { sendCsv } from './export';
import { filterReaders, findRecord, listRecords } from './query';
import { toExplainedRecord, toRecordOfAccount } from './record';

/** The same for operators: of every account, or of one with `account=`; each record says whose it is. */
export function adminRoutes(gateway: Pick<Gateway, 'database' | 'catalog'>): Route[] {
  const { database } = gateway;
  return [
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/usage',
      summary: 'Usage records of all accounts, newest first.',
      handle: async ({ query }, _request, response) => {
        const filters = readQuery(query, { ...filterReaders(gateway), ...PAGE_READERS, account: readUuid });
        sendJson(response, 200, await listRecords(database, filters, pageOf(filters), toExplainedRecord));
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/usage.csv',
      summary: 'The same records as a CSV file.',
      handle: async ({ query }, _request, response) => {
        const filters = readQuery(query, { ...filterReaders(gateway), account: readUuid });
        await sendCsv(response, database, filters, [...RECORD_COLUMNS, 'accountId'], toRecordOfAccount);
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/usage/{requestId}',
      summary: 'The usage record of one call of any account.',
      handle: async ({ params }, _request, response) => {
        const row = await findRecord(database, params['requestId'] ?? '');
        if (row === undefined) throw fail('NOT_FOUND', { message: 'There is no usage record of this request.' });
        sendJson(response, 200, toExplainedRecord(row));
      },
    },
  ];
}
