import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { object, orNull, pageOf as pageShape, shape } from '../../../core/http/shape';
import { decodeIdCursor, toPage } from '../../../core/storage/page';
import { fromRow, show } from '../books/rows';
import type { SandboxService } from '../service';
import { type Cleanup, selectCleanup } from '../worker/cleanup';

export function listOrphansRoute({ database }: SandboxService): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/sandboxes/orphans',
    summary: 'Instances at suppliers that belong to no sandbox, newest first: to be removed, or removed.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of instances.', schema: pageShape(object(ORPHAN)) } },
    handle: async ({ query }, _request, response) => {
      const { limit, cursor } = pageOf(readQuery(query, PAGE_READERS));
      const found = await selectCleanup(database, { limit: limit + 1, after: decodeIdCursor(cursor) });
      const page = toPage(
        found.map((row) => fromRow<Cleanup>(row)),
        limit,
        ({ id }) => [id],
        (found) =>
          show(ORPHAN, {
            ...found,
            supplierRef: found.ref,
            foundAtMs: found.createdAtMs,
            removedAtMs: found.doneAtMs,
          }),
      );
      sendJson(response, 200, page);
    },
  };
}

const ORPHAN = {
  id: shape.uuid,
  supplier: shape.text,
  place: orNull(shape.text),
  supplierRef: { type: 'object' },
  name: shape.text,
  sandboxId: orNull(shape.uuid),
  reason: shape.text,
  attempts: shape.integer,
  foundAt: shape.time,
  removedAt: orNull(shape.time),
};
