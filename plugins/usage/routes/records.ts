import type { Knex } from 'knex';
import { requireAccount } from '../../../core/accounts/accounts';
import { restrictionOfKey } from '../../../core/accounts/member-keys';
import { adminRoute, keyRoute } from '../../../core/api/json-routes';
import type { AccountRoute, Route } from '../../../core/api/route';
import { ATTEMPT_SHAPES, showAttempt } from '../../../core/catalog/attempt-fields';
import { readGivenDemands } from '../../../core/catalog/demands';
import { PAGE_READERS, pageOf, reader, readQuery, readTime, readUuid, required } from '../../../core/http/query';
import { object, pageShape, shape } from '../../../core/http/shape';
import { sendCsv } from '../export';
import { filterReaders, listRecords, requireRecord, type UsageQueryContext } from '../query';
import {
  EXPLAINED_RECORD,
  OPERATOR_COLUMNS,
  RECORD_COLUMNS,
  toExplainedRecord,
  toRecord,
  toRecordOfAccount,
  USAGE_RECORD,
} from '../record';
import { REPORT, readProof } from '../report';

/** The endpoint that lists usage records, only those of the account that owns the API key. */
export function listRecordsRoute(gateway: UsageQueryContext): Route {
  return keyRoute('GET /v1/usage', {
    summary:
      "Usage records of the key's account, newest first; the key of a user with the role member reads the user's own.",
    query: { ...filterReaders(gateway), ...PAGE_READERS },
    answers: { 200: { description: 'A page of records.', schema: pageShape(USAGE_RECORD) } },
    handle: async ({ accountId, key, filters }) => {
      const memberId = await restrictionOfKey(gateway.database, key.keyId);
      return listRecords(gateway.database, { ...filters, account: accountId, memberId }, pageOf(filters), toRecord);
    },
  });
}

export function showRecordRoute({ database }: UsageQueryContext): Route {
  return keyRoute('GET /v1/usage/{requestId}', {
    summary: 'The usage record of one call.',
    answers: { 200: { description: 'The record.', schema: USAGE_RECORD } },
    handle: async ({ accountId, key, params }) => {
      const memberId = await restrictionOfKey(database, key.keyId);
      return toRecord(await requireRecord(database, params.requestId, { account: accountId, memberId }));
    },
  });
}

export function exportRecordsRoute(gateway: UsageQueryContext): AccountRoute {
  const filterQuery = filterReaders(gateway);
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/usage.csv',
    summary: 'The same records as a CSV file.',
    query: filterQuery,
    answers: CSV,
    handle: async ({ accountId, memberId: ownId, key, query }, _request, response) => {
      const memberId = key === undefined ? ownId : await restrictionOfKey(gateway.database, key.keyId);
      const own = { ...readQuery(query, filterQuery), account: accountId, memberId };
      await sendCsv(response, gateway.database, own, RECORD_COLUMNS, toRecord);
    },
  };
}

const CSV = {
  200: { description: 'A line for each record, newest first.', schema: shape.text, mediaType: 'text/csv' },
} as const;

/** Returns the attempts of one call, in order; an empty list if the gateway refused the call before it tried an upstream. */
async function listAttempts(database: Knex, requestId: string) {
  const rows: Record<string, unknown>[] = await database('upstream_attempts')
    .where({ request_id: requestId })
    .orderBy(['created_at', 'number']);
  return rows.map(showAttempt);
}

const REPORT_READERS = {
  account: required(readUuid),
  where: required(
    reader({ type: 'string', description: 'What must be true, in the grammar of `X-SVC-Require`.' }, readGivenDemands),
  ),
  from: readTime,
  to: readTime,
};

/** Lists the endpoints for operators: records of every account, or of the one in `account=`. Each record names its account. */
export function adminUsageRoutes(gateway: UsageQueryContext): readonly Route[] {
  const { database } = gateway;
  return [
    adminRoute('GET /admin/v1/usage', {
      role: 'read',
      summary: 'Usage records of all accounts, newest first.',
      query: { ...filterReaders(gateway), account: readUuid, ...PAGE_READERS },
      answers: { 200: { description: 'A page of records.', schema: pageShape(EXPLAINED_RECORD) } },
      handle: ({ filters }) => listRecords(database, filters, pageOf(filters), toExplainedRecord),
    }),
    adminRoute('GET /admin/v1/usage.csv', {
      role: 'read',
      summary: 'The same records as a CSV file.',
      query: { ...filterReaders(gateway), account: readUuid },
      answers: CSV,
      handle: ({ filters }, _request, response) =>
        sendCsv(response, database, filters, [...RECORD_COLUMNS, ...OPERATOR_COLUMNS], toRecordOfAccount),
    }),
    adminRoute('GET /admin/v1/usage/report', {
      role: 'read',
      summary: 'Whether every attempt at an upstream in a period met demands such as `region=eu; trains=no`.',
      query: REPORT_READERS,
      answers: { 200: { description: 'The report.', schema: REPORT } },
      errors: ['NOT_FOUND'],
      handle: async ({ filters: { account, where, ...period } }) => {
        await requireAccount(database, account);
        return readProof(database, { ...period, account, where });
      },
    }),
    adminRoute('GET /admin/v1/usage/{requestId}', {
      role: 'read',
      summary: 'The usage record of one call of any account.',
      answers: { 200: { description: 'The record.', schema: EXPLAINED_RECORD } },
      handle: async ({ params }) => toExplainedRecord(await requireRecord(database, params.requestId)),
    }),
    // Only operators see attempts, because they show what vendors charge the platform.
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
