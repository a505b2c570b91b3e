import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/base/errors';
import { PAGE_READERS, pageOf, readUuid, wordReader } from '../../../core/http/query';
import { listOf, object, orNull, pageShape, shape } from '../../../core/http/shape';
import { writeAudit } from '../../../core/storage/audit';
import { newestPage } from '../../../core/storage/page';
import type { Sandbox } from '../lifecycle/sandbox';
import { FINAL_STATES, OBSERVED_STATES } from '../lifecycle/states';
import type { SandboxService } from '../service';
import type { Host } from '../store/places';
import { showSandboxToOperators } from '../store/record';
import { fromRow, show } from '../store/rows';
import { SANDBOX_OF_ANY } from '../store/shapes';
import type { Cleanup } from '../worker/orphans';

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

const READERS = {
  ...PAGE_READERS,
  account: readUuid,
  state: wordReader(['ALL', ...OBSERVED_STATES]),
};

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

/** The operator's routes. */
export function adminRoutes({ database, places }: SandboxService): readonly Route[] {
  const find = async (id: string) => {
    const place = (await places.list()).find((each) => each.id === id);
    if (place === undefined) throw fail('NOT_FOUND', { message: 'The place does not exist.' });
    return place;
  };
  const showPlace = (place: Host) => show(PLACE_MEMBERS, { ...place, silent: places.isSilent(place) });
  return [
    adminRoute('GET /admin/v1/sandboxes', {
      role: 'read',
      summary: 'Sandboxes of all accounts, newest first; active ones unless a state, or ALL, is asked for.',
      query: READERS,
      answers: { 200: { description: 'A page of sandboxes.', schema: pageShape(SANDBOX_OF_ANY) } },
      handle: ({ filters }) => {
        const rows = database('sandboxes').where({ admission: 'ACCEPTED' });
        if (filters.account !== undefined) rows.where({ account_id: filters.account });
        if (filters.state === undefined) rows.whereNotIn('observed_state', FINAL_STATES);
        else if (filters.state !== 'ALL') rows.where({ observed_state: filters.state });
        return newestPage(rows, pageOf(filters), async (row) => showSandboxToOperators(fromRow<Sandbox>(row)));
      },
    }),
    adminRoute('GET /admin/v1/sandboxes/orphans', {
      role: 'read',
      summary: 'Instances at suppliers that belong to no sandbox, newest first: to be removed, or removed.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of instances.', schema: pageShape(object(ORPHAN)) } },
      handle: ({ filters }) =>
        newestPage(database('supplier_cleanup'), pageOf(filters), async (row) => {
          const found = fromRow<Cleanup>(row);
          const { ref: supplierRef, createdAtMs: foundAtMs, doneAtMs: removedAtMs } = found;
          return show(ORPHAN, { ...found, supplierRef, foundAtMs, removedAtMs });
        }),
    }),
    adminRoute('GET /admin/v1/sandboxes/places', {
      role: 'read',
      summary: 'Places of sandboxes that only some nodes can reach, last seen first.',
      answers: { 200: { description: 'All places.', schema: object({ items: listOf(PLACE) }) } },
      handle: async () => ({ items: (await places.list()).map(showPlace) }),
    }),
    adminRoute('POST /admin/v1/sandboxes/places/{id}/lose', {
      role: 'write',
      summary:
        'Say that the node of a place is gone for good: its sandboxes end as lost, billed to their last confirmation.',
      answers: { 200: { description: 'The place.', schema: PLACE } },
      errors: ['NOT_FOUND', 'CONFLICT'],
      handle: async ({ params, operator }) => {
        const { id, activeSandboxes } = await find(params.id);
        await database.transaction(async (transaction) => {
          if (!(await places.lose(transaction, id)))
            throw fail('CONFLICT', {
              message:
                'A node has recently reported that it reaches the sandboxes of this place. Stop that node first.',
            });
          const { actor } = operator;
          const entry = { actor, action: 'place.lose', subject: `place:${id}`, after: { activeSandboxes } } as const;
          await writeAudit(transaction, entry);
        });
        return showPlace(await find(id));
      },
    }),
  ];
}
