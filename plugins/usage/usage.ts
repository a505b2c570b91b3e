import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { AccountRoute, Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery } from '../../core/query';
import { pageOf as pageShape, shape } from '../../core/shape';
import { RECORD_COLUMNS } from './columns';
import { sendCsv } from './export';
import { filterReaders, findRecord, listRecords } from './query';
import { RECORD, toRecord } from './record';

type Parts = Pick<Gateway, 'database' | 'catalog'>;

/** A key sees the records of its own account, and of no other. */
export function usageRoutes(gateway: Parts): Route[] {
  const { database } = gateway;
  const listQuery = { ...filterReaders(gateway), ...PAGE_READERS };
  return [
    {
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
        sendJson(response, 200, await listRecords(database, own, pageOf(filters), toRecord));
      },
    },
    csvRoute(gateway),
    {
      listener: 'public',
      auth: 'key',
      method: 'GET',
      path: '/v1/usage/{requestId}',
      summary: 'The usage record of one call.',
      answers: { 200: { description: 'The record.', schema: RECORD } },
      handle: async ({ accountId, params }, _request, response) => {
        const row = await findRecord(database, params['requestId'] ?? '', accountId);
        if (row === undefined) throw noRecord();
        sendJson(response, 200, toRecord(row));
      },
    },
  ];
}

export function csvRoute(gateway: Parts): AccountRoute {
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

export function noRecord() {
  return fail('NOT_FOUND', { message: 'There is no usage record of this request.' });
}
