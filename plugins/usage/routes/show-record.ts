import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { type Parts, requireRecord } from '../query';
import { RECORD, toRecord } from '../record';

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
