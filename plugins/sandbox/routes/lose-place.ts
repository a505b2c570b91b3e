import { NOTHING } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { jsonBody, sendJson } from '../../../core/http/http';
import { writeAudit } from '../../../core/storage/audit';
import type { SandboxService } from '../service';
import { PLACE, showPlace } from './place';

/** Lets an operator declare that the node of a place, the only one that reaches its sandboxes, is lost for good. */
export function losePlaceRoute({ database, places }: SandboxService): Route {
  const readNothing = jsonBody<object>(NOTHING);
  const find = async (id: string) => {
    const place = await places.find(id);
    if (place === undefined) throw fail('NOT_FOUND', { message: 'The place does not exist.' });
    return place;
  };
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/sandboxes/places/{id}/lose',
    summary:
      'Say that the node of a place is gone for good: its sandboxes end as lost, billed to their last confirmation.',
    body: NOTHING,
    answers: { 200: { description: 'The place.', schema: PLACE } },
    errors: ['NOT_FOUND', 'CONFLICT'],
    handle: async ({ params, operator }, request, response) => {
      await readNothing(request);
      const { id, activeSandboxes } = await find(params['id'] ?? '');
      await database.transaction(async (transaction) => {
        if (!(await places.lose(transaction, id)))
          throw fail('CONFLICT', {
            message: 'A node has recently reported that it reaches the sandboxes of this place. Stop that node first.',
          });
        const subject = `place:${id}`;
        await writeAudit(transaction, {
          actor: operator.actor,
          action: 'place.lose',
          subject,
          after: { activeSandboxes },
        });
      });
      sendJson(response, 200, showPlace(places, await find(id)));
    },
  };
}
