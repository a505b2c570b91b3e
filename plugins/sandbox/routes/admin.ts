import { NOTHING } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { jsonBody, sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery, readUuid, wordReader } from '../../../core/http/query';
import { listOf, object, orNull, pageOf as pageShape, shape } from '../../../core/http/shape';
import { writeAudit } from '../../../core/storage/audit';
import { decodeIdCursor, toPage } from '../../../core/storage/page';
import type { Place } from '../books/places';
import { showSandboxToOperators } from '../books/record';
import { fromRow, show } from '../books/rows';
import { SANDBOX_OF_ANY } from '../books/shapes';
import type { Sandbox } from '../life/sandbox';
import { FINAL_STATES, OBSERVED_STATES } from '../life/states';
import type { SandboxService } from '../service';
import { type Cleanup, selectCleanup } from '../worker/orphans';

const PLACE_MEMBERS = {
  id: shape.text,
  supplier: shape.text,
  host: shape.text,
  seenAt: shape.time,
  silent: shape.yes,
  lostAt: orNull(shape.time),
  activeSandboxes: shape.integer,
};
const PLACE = object(PLACE_MEMBERS);

/** Returns a place as operators see it: the node that alone reaches some sandboxes. */
function showPlace(places: SandboxService['places'], place: Place) {
  return show(PLACE_MEMBERS, { ...place, silent: places.isSilent(place) });
}

const READERS = {
  ...PAGE_READERS,
  account: readUuid,
  state: wordReader(['ALL', ...OBSERVED_STATES]),
};

export function adminListSandboxesRoute({ database }: SandboxService): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/sandboxes',
    summary: 'Sandboxes of all accounts, newest first; active ones unless a state, or ALL, is asked for.',
    query: READERS,
    answers: { 200: { description: 'A page of sandboxes.', schema: pageShape(SANDBOX_OF_ANY) } },
    handle: async ({ query }, _request, response) => {
      const filters = readQuery(query, READERS);
      const { limit, cursor } = pageOf(filters);
      const rows = database('sandboxes')
        .where({ admission: 'ACCEPTED' })
        .orderBy('id', 'desc')
        .limit(limit + 1);
      if (filters.account !== undefined) rows.where({ account_id: filters.account });
      if (filters.state === undefined) rows.whereNotIn('observed_state', FINAL_STATES);
      else if (filters.state !== 'ALL') rows.where({ observed_state: filters.state });
      const after = decodeIdCursor(cursor);
      if (after !== undefined) rows.where('id', '<', after);
      const found: Record<string, unknown>[] = await rows;
      const page = toPage(
        found.map((row) => fromRow<Sandbox>(row)),
        limit,
        ({ id }) => [id],
        showSandboxToOperators,
      );
      sendJson(response, 200, page);
    },
  };
}

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

export function listPlacesRoute({ places }: SandboxService): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/sandboxes/places',
    summary: 'Places of sandboxes that only some nodes can reach, last seen first.',
    answers: { 200: { description: 'All places.', schema: object({ items: listOf(PLACE) }) } },
    handle: async (_visit, _request, response) => {
      sendJson(response, 200, { items: (await places.list()).map((each) => showPlace(places, each)) });
    },
  };
}

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
