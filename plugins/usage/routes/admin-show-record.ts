import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { type Parts, requireRecord } from '../query';
import { EXPLAINED_RECORD, toExplainedRecord } from '../record';

export function adminShowRecordRoute({ database }: Parts): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/usage/{requestId}',
    summary: 'The usage record of one call of any account.',
    answers: { 200: { description: 'The record.', schema: EXPLAINED_RECORD } },
    handle: async ({ params }, _request, response) => {
      sendJson(response, 200, toExplainedRecord(await requireRecord(database, params['requestId'])));
    },
  };
}
