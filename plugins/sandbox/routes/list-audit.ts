import type { Knex } from 'knex';
import type { AccountRoute } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { readQuery, wordReader } from '../../../core/http/query';
import { listOf, object, oneOf } from '../../../core/http/shape';
import { SEGMENTS, showEvent, showOperation, showPeriod, showSegment } from '../books/record';
import { fromRow } from '../books/rows';
import { EVENT, OPERATION, PERIOD, SEGMENT } from '../books/shapes';
import { findSandbox } from '../books/store';
import type { SandboxService } from '../service';
import { NUMBERED_PAGES, PAGE_NUMBERS } from './numbered-pages';

/** The lists of a sandbox's audit. Each begins with the oldest row, so that pages stay the same while new rows are written. */
const KINDS = {
  operations: {
    rows: 'SELECT * FROM sandbox_operations',
    order: 'id',
    show: (row: object) => showOperation(row as never),
  },
  events: { rows: 'SELECT * FROM sandbox_events', order: 'sequence', show: (row: object) => showEvent(row as never) },
  usageSegments: { rows: SEGMENTS, order: 'sequence', show: (row: object) => showSegment(row as never) },
  billingPeriods: {
    rows: 'SELECT * FROM billing_periods',
    order: 'sequence',
    show: (row: object) => showPeriod(row as never),
  },
} as const;

type Kind = keyof typeof KINDS;

const READERS = {
  kind: wordReader(Object.keys(KINDS) as Kind[], { default: 'operations' }),
  ...NUMBERED_PAGES,
};

const PAGE = object({
  items: listOf({ anyOf: [OPERATION, EVENT, SEGMENT, PERIOD] }),
  kind: oneOf(...Object.keys(KINDS)),
  ...PAGE_NUMBERS,
});

export function listAuditRoute({ database }: SandboxService): AccountRoute {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/audit',
    summary: 'All operations, events, usage segments or billing periods of a sandbox, oldest first.',
    query: READERS,
    answers: { 200: { description: 'A page of them.', schema: PAGE } },
    errors: ['SANDBOX_NOT_FOUND'],
    handle: async ({ accountId, params, query }, _request, response) => {
      const { kind = 'operations', page = 1, pageSize = 50 } = readQuery(query, READERS);
      const { id } = await findSandbox(database, accountId, params['id'] ?? '');
      const { items, total } = await readPage(database, kind, id, page, pageSize);
      sendJson(response, 200, { items, kind, page, pageSize, total });
    },
  };
}

async function readPage(database: Knex, kind: Kind, id: string, page: number, pageSize: number) {
  const { rows, order, show } = KINDS[kind];
  const { rows: found } = await database.raw<{ rows: (Record<string, unknown> & { total: bigint })[] }>(
    `SELECT page.*, (SELECT count(*) FROM (${rows}) AS every WHERE every.sandbox_id = :id) AS total
     FROM (${rows}) AS page WHERE page.sandbox_id = :id ORDER BY ${order} LIMIT :limit OFFSET :offset`,
    { id, limit: pageSize, offset: (page - 1) * pageSize },
  );
  const total = found[0]?.total ?? (page === 1 ? 0n : await countOf(database, rows, id));
  return { items: found.map(({ total: _, ...row }) => show(fromRow(row))), total: Number(total) };
}

/** Counts all rows of a sandbox, because a page past the end has no row that carries the total. */
async function countOf(database: Knex, rows: string, id: string): Promise<bigint> {
  const { rows: counted } = await database.raw<{ rows: { total: bigint }[] }>(
    `SELECT count(*) AS total FROM (${rows}) AS every WHERE every.sandbox_id = :id`,
    { id },
  );
  return counted[0]?.total ?? 0n;
}
