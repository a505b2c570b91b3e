import type { Knex } from 'knex';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery, readUuid } from '../../../core/http/query';
import { object, orNull, pageOf as pageShape, shape } from '../../../core/http/shape';
import { formatUsd } from '../../../core/money';
import { decodeIdCursor, toPage } from '../../../core/storage/page';

const READERS = { account: readUuid, ...PAGE_READERS };

interface ShortfallRow {
  readonly rid: string;
  readonly account_id: string;
  readonly key_id: string | null;
  readonly amount_e8: bigint;
  readonly shortfall_e8: bigint;
  readonly created_at: Date;
}

export function listShortfallsRoute(database: Knex): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/ledger/shortfalls',
    summary: 'Charges below the cost of their call because the balance was too low; newest first.',
    query: READERS,
    answers: { 200: { description: 'A page of charges.', schema: pageShape(SHORTFALL) } },
    handle: async ({ query }, _request, response) => {
      const { account, ...filters } = readQuery(query, READERS);
      const { limit, cursor } = pageOf(filters);
      // A reservation's id contains its time.
      const rows = database<ShortfallRow>('ledger_entries')
        .where('shortfall_e8', '>', 0)
        .orderBy('rid', 'desc')
        .limit(limit + 1);
      if (account !== undefined) rows.where({ account_id: account });
      const after = decodeIdCursor(cursor);
      if (after !== undefined) rows.where('rid', '<', after);
      const found: ShortfallRow[] = await rows;
      sendJson(
        response,
        200,
        toPage(found, limit, ({ rid }) => [rid], showShortfall),
      );
    },
  };
}

function showShortfall(row: ShortfallRow): object {
  return {
    accountId: row.account_id,
    keyId: row.key_id,
    rid: row.rid,
    createdAt: row.created_at.toISOString(),
    dueUsd: formatUsd(row.shortfall_e8 - row.amount_e8),
    chargedUsd: formatUsd(-row.amount_e8),
    shortfallUsd: formatUsd(row.shortfall_e8),
  };
}

const SHORTFALL = object({
  accountId: shape.uuid,
  keyId: orNull(shape.uuid),
  rid: shape.uuid,
  createdAt: shape.time,
  dueUsd: shape.usd,
  chargedUsd: shape.usd,
  shortfallUsd: shape.usd,
});
