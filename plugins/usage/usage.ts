import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery } from '../../core/query';
import { RECORD_COLUMNS } from './columns';
import { sendCsv } from './export';
import { filterReaders, findRecord, listRecords } from './query';
import { toRecord } from './record';

/** A key sees the records of its own account, and of no other. */
export function usageRoutes(gateway: Pick<Gateway, 'database' | 'catalog'>): Route[] {
  const { database } = gateway;
  return [
    {
      listener: 'public',
      auth: 'key',
      method: 'GET',
      path: '/v1/usage',
      summary: "Usage records of the key's account, newest first.",
      handle: async ({ key, query }, _request, response) => {
        const filters = readQuery(query, { ...filterReaders(gateway), ...PAGE_READERS });
        const own = { ...filters, account: key.accountId };
        sendJson(response, 200, await listRecords(database, own, pageOf(filters), toRecord));
      },
    },
    {
      listener: 'public',
      auth: 'key',
      method: 'GET',
      path: '/v1/usage.csv',
      summary: 'The same records as a CSV file.',
      handle: async ({ key, query }, _request, response) => {
        const own = { ...readQuery(query, filterReaders(gateway)), account: key.accountId };
        await sendCsv(response, database, own, RECORD_COLUMNS, toRecord);
      },
    },
    {
      listener: 'public',
      auth: 'key',
      method: 'GET',
      path: '/v1/usage/{requestId}',
      summary: 'The usage record of one call.',
      handle: async ({ key, params }, _request, response) => {
        const row = await findRecord(database, params['requestId'] ?? '', key.accountId);
        if (row === undefined) throw fail('NOT_FOUND', { message: 'There is no usage record of this request.' });
        sendJson(response, 200, toRecord(row));
      },
    },
  ];
}
