import type { Route } from '../../../core/api/route';
import { ATTEMPT_SHAPES } from '../../../core/catalog/attempt-fields';
import { sendJson } from '../../../core/http/http';
import { object, pageOf } from '../../../core/http/shape';
import { listAttempts } from '../../../core/records/attempts';
import { type Parts, requireRecord } from '../query';

/** Lists a call's attempts, for operators only: they show what vendors charge the platform, whatever the customer pays. */
export function adminListAttemptsRoute({ database }: Parts): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/usage/{requestId}/attempts',
    summary: 'Every request to an upstream that one call of any account made, with what it used and cost there.',
    answers: { 200: { description: 'The attempts, in order.', schema: pageOf(object(ATTEMPT_SHAPES)) } },
    handle: async ({ params }, _request, response) => {
      const { request_id: requestId } = await requireRecord(database, params['requestId']);
      sendJson(response, 200, { items: await listAttempts(database, requestId), nextCursor: null });
    },
  };
}
