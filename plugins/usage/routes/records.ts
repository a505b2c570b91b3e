import type { Knex } from 'knex';
import { adminRoute } from '../../../core/api/admin-route';
import type { AccountRoute, Route } from '../../../core/api/route';
import { ATTEMPT_SHAPES, showAttempt } from '../../../core/catalog/attempt-fields';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery, readUuid } from '../../../core/http/query';
import { object, pageOf as pageShape, shape } from '../../../core/http/shape';
import { sendCsv } from '../export';
import { filterReaders, listRecords, type Parts, requireRecord } from '../query';
import {
  EXPLAINED_RECORD,
  OPERATOR_COLUMNS,
  RECORD,
  RECORD_COLUMNS,
  toExplainedRecord,
  toRecord,
  toRecordOfAccount,
} from '../record';

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

export function showRecordRoute({ database }: Parts): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/usage/{requestId}',
    summary: 'The usage record of one call.',
    answers: { 200: { description: 'The record.', schema: RECORD } },
    handle: async ({ accountId, params }, _request, response) => {
      sendJson(response, 200, toRecord(await requireRecord(database, params['requestId'], accountId)));
    },
  };
}

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

function adminExportRecordsRoute(gateway: Parts): Route {
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

/** Returns the attempts of one call, in order; none if the call was refused before any upstream was tried. */
async function listAttempts(database: Knex, requestId: string) {
  const rows: Record<string, unknown>[] = await database('upstream_attempts')
    .where({ request_id: requestId })
    .orderBy(['created_at', 'number']);
  return rows.map(showAttempt);
}

/** Lists the endpoints for operators: records of every account, or of one with `account=`. Each record names its account. */
export function adminUsageRoutes(gateway: Parts): readonly Route[] {
  const { database } = gateway;
  return [
    adminRoute('GET /admin/v1/usage', {
      role: 'read',
      summary: 'Usage records of all accounts, newest first.',
      query: { ...filterReaders(gateway), account: readUuid, ...PAGE_READERS },
      answers: { 200: { description: 'A page of records.', schema: pageShape(EXPLAINED_RECORD) } },
      handle: ({ filters }) => listRecords(database, filters, pageOf(filters), toExplainedRecord),
    }),
    adminExportRecordsRoute(gateway),
    adminRoute('GET /admin/v1/usage/{requestId}', {
      role: 'read',
      summary: 'The usage record of one call of any account.',
      answers: { 200: { description: 'The record.', schema: EXPLAINED_RECORD } },
      handle: async ({ params }) => toExplainedRecord(await requireRecord(database, params.requestId)),
    }),
    // Only operators see attempts, because they show what vendors charge the platform, whatever the customer pays.
    adminRoute('GET /admin/v1/usage/{requestId}/attempts', {
      role: 'read',
      summary: 'Every request to an upstream that one call of any account made, with what it used and cost there.',
      answers: { 200: { description: 'The attempts, in order.', schema: pageShape(object(ATTEMPT_SHAPES)) } },
      handle: async ({ params }) => {
        const { request_id: requestId } = await requireRecord(database, params.requestId);
        return { items: await listAttempts(database, requestId), nextCursor: null };
      },
    }),
  ];
}
