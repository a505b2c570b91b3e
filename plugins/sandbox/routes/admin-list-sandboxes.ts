import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery, readUuid, wordReader } from '../../../core/http/query';
import { pageOf as pageShape } from '../../../core/http/shape';
import { decodeIdCursor, toPage } from '../../../core/storage/page';
import { showSandboxToOperators } from '../books/record';
import { fromRow } from '../books/rows';
import { SANDBOX_OF_ANY } from '../books/shapes';
import type { Sandbox } from '../life/sandbox';
import { FINAL_STATES, OBSERVED_STATES } from '../life/states';
import type { SandboxService } from '../service';

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
