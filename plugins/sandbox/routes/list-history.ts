import type { Knex } from 'knex';
import type { AccountRoute } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { readQuery, readText, readTime, wordReader } from '../../../core/http/query';
import { listOf, object, shape } from '../../../core/http/shape';
import { showSandbox } from '../books/record';
import { fromRow } from '../books/rows';
import { SANDBOX } from '../books/shapes';
import type { Sandbox } from '../life/sandbox';
import { FINAL_STATES, OBSERVED_STATES } from '../life/states';
import type { SandboxService } from '../service';
import { NUMBERED_PAGES, PAGE_NUMBERS } from './numbered-pages';

const STATES = ['ALL', 'ACTIVE', 'HISTORY', ...OBSERVED_STATES] as const;
type State = (typeof STATES)[number];

const READERS = {
  state: wordReader(STATES, { default: 'ALL' }),
  search: readText,
  from: readTime,
  to: readTime,
  ...NUMBERED_PAGES,
};

const PAGE = object({
  items: listOf(SANDBOX),
  stateCounts: object(Object.fromEntries(STATES.map((each) => [each, shape.integer]))),
  ...PAGE_NUMBERS,
});

export function listHistoryRoute({ database }: SandboxService): AccountRoute {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandbox-history',
    summary: 'Sandboxes of all times, newest first, with how many are in each state.',
    query: READERS,
    answers: { 200: { description: 'A page of sandboxes.', schema: PAGE } },
    handle: async ({ accountId, query }, _request, response) => {
      const { state = 'ALL', search, from, to, page = 1, pageSize = 50 } = readQuery(query, READERS);
      const found = () => narrow(database('sandboxes'), accountId, { search, from, to });
      const counted: { observed_state: string; count: bigint }[] = await found()
        .groupBy('observed_state')
        .select('observed_state')
        .count({ count: '*' });
      const counts = Object.fromEntries(counted.map((row) => [row.observed_state, Number(row.count)]));
      const rows: Record<string, unknown>[] = await ofState(found(), state)
        .orderBy('id', 'desc')
        .limit(pageSize)
        .offset((page - 1) * pageSize);
      sendJson(response, 200, {
        items: rows.map((row) => showSandbox(fromRow<Sandbox>(row))),
        total: sum(counts, statesOf(state)),
        stateCounts: {
          ALL: sum(counts, OBSERVED_STATES),
          ACTIVE: sum(counts, statesOf('ACTIVE')),
          HISTORY: sum(counts, FINAL_STATES),
          ...Object.fromEntries(OBSERVED_STATES.map((each) => [each, counts[each] ?? 0])),
        },
        page,
        pageSize,
      });
    },
  };
}

interface Found {
  readonly search: string | undefined;
  readonly from: Date | undefined;
  readonly to: Date | undefined;
}

/** Narrows the rows to those that match. The search text may match the id, the idempotency key, the offering's name or the metadata. */
function narrow(rows: Knex.QueryBuilder, accountId: string, { search, from, to }: Found): Knex.QueryBuilder {
  rows.where({ account_id: accountId, admission: 'ACCEPTED' });
  if (from !== undefined) rows.where('created_at', '>=', from);
  if (to !== undefined) rows.where('created_at', '<', to);
  if (search === undefined) return rows;
  const pattern = `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`;
  return rows.whereRaw(
    `(id::text ILIKE :pattern OR idempotency_key ILIKE :pattern OR offering ->> 'name' ILIKE :pattern OR metadata::text ILIKE :pattern)`,
    { pattern },
  );
}

function statesOf(state: State): readonly string[] {
  if (state === 'ALL') return OBSERVED_STATES;
  if (state === 'HISTORY') return FINAL_STATES;
  if (state === 'ACTIVE') return OBSERVED_STATES.filter((each) => !(FINAL_STATES as readonly string[]).includes(each));
  return [state];
}

function ofState(rows: Knex.QueryBuilder, state: State): Knex.QueryBuilder {
  return state === 'ALL' ? rows : rows.whereIn('observed_state', statesOf(state));
}

function sum(counts: Readonly<Record<string, number>>, states: readonly string[]): number {
  return states.reduce((total, state) => total + (counts[state] ?? 0), 0);
}
