import type { Knex } from 'knex';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import {
  flagReader,
  PAGE_READERS,
  pageOf,
  readFilter,
  readQuery,
  readText,
  readUuid,
  wordsReader,
} from '../../../core/http/query';
import { listOf, object, orNull, shape } from '../../../core/http/shape';
import { decodeIdCursor, toPage } from '../../../core/storage/page';
import { showSandbox } from '../books/record';
import { fromRow } from '../books/rows';
import { SANDBOX } from '../books/shapes';
import type { Sandbox } from '../life/sandbox';
import { FINAL_STATES, OBSERVED_STATES } from '../life/states';
import type { SandboxService } from '../service';

const READERS = {
  ...PAGE_READERS,
  state: wordsReader(OBSERVED_STATES),
  offeringId: readUuid,
  includeFinal: flagReader(false),
};

const PAGE = object({ items: listOf(SANDBOX), nextCursor: orNull(shape.text), total: shape.integer });

export function listSandboxesRoute({ database }: SandboxService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes',
    summary:
      "The account's sandboxes, newest first; active ones unless includeFinal=true. `metadata.<name>=<value>` finds those with it.",
    query: READERS,
    answers: { 200: { description: 'A page of sandboxes.', schema: PAGE } },
    handle: async ({ key, query }, _request, response) => {
      const { metadata, rest } = takeMetadata(query);
      const filters = readQuery(rest, READERS);
      const { limit, cursor } = pageOf(filters);
      const narrow = (rows: Knex.QueryBuilder) => {
        rows.where({ account_id: key.accountId, admission: 'ACCEPTED' });
        if (filters.state !== undefined) rows.whereIn('observed_state', filters.state);
        else if (filters.includeFinal !== true) rows.whereNotIn('observed_state', FINAL_STATES);
        if (filters.offeringId !== undefined) rows.where({ offering_id: filters.offeringId });
        for (const [name, value] of metadata) rows.whereRaw('metadata ->> ?::text = ?', [name, value]);
        return rows;
      };
      const after = decodeIdCursor(cursor);
      const page = narrow(database('sandboxes'))
        .orderBy('id', 'desc')
        .limit(limit + 1);
      if (after !== undefined) page.where('id', '<', after);
      const rows: Record<string, unknown>[] = await page;
      const [counted] = await narrow(database('sandboxes')).count({ total: '*' });
      const shown = toPage(
        rows.map((row) => fromRow<Sandbox>(row)),
        limit,
        ({ id }) => [id],
        showSandbox,
      );
      sendJson(response, 200, { ...shown, total: Number(counted?.['total'] ?? 0) });
    },
  };
}

/** Separates `metadata.<name>=<value>` from the query, because callers choose these names. */
function takeMetadata(query: URLSearchParams): { metadata: [string, string][]; rest: URLSearchParams } {
  const prefix = 'metadata.';
  const metadata: [string, string][] = [];
  const rest = new URLSearchParams();
  for (const [name, value] of query) {
    if (name.startsWith(prefix))
      metadata.push([readFilter(name, name.slice(prefix.length), readText), readFilter(name, value, readText)]);
    else rest.append(name, value);
  }
  return { metadata, rest };
}
