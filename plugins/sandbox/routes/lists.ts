import type { Knex } from 'knex';
import type { AccountRoute, Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { jsonBody, sendJson } from '../../../core/http/http';
import {
  flagReader,
  integerReader,
  PAGE_READERS,
  pageOf,
  readFilter,
  readQuery,
  readText,
  readTime,
  readUuid,
  wordReader,
  wordsReader,
} from '../../../core/http/query';
import { listOf, object, oneOf, orNull, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { decodeIdCursor, toPage } from '../../../core/storage/page';
import { BY_REQUIREMENTS, byId, readCeiling } from '../asking/creation';
import { insertQuote } from '../books/quotes';
import { SEGMENTS, showEvent, showOperation, showPeriod, showSandbox, showSegment } from '../books/record';
import { fromRow, showTime } from '../books/rows';
import { EVENT, OFFERING, OPERATION, PERIOD, SANDBOX, SEGMENT } from '../books/shapes';
import { findSandbox } from '../books/store';
import type { Sandbox } from '../life/sandbox';
import { FINAL_STATES, OBSERVED_STATES } from '../life/states';
import type { OfferedInstance } from '../offers/offering';
import { matchOffering, readRequirements } from '../offers/requirements';
import type { SandboxService } from '../service';

/** The query parameters of pages with a number. Their answers carry the total. */
const NUMBERED_PAGES = {
  page: integerReader(1, 1_000_000, { default: 1 }),
  pageSize: integerReader(1, 100, { default: 50 }),
};

const PAGE_NUMBERS = { page: shape.integer, pageSize: shape.integer, total: shape.integer };

const SANDBOX_READERS = {
  ...PAGE_READERS,
  state: wordsReader(OBSERVED_STATES),
  offeringId: readUuid,
  includeFinal: flagReader(false),
};

const SANDBOX_PAGE = object({ items: listOf(SANDBOX), nextCursor: orNull(shape.text), total: shape.integer });

export function listSandboxesRoute({ database }: SandboxService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes',
    summary:
      "The account's sandboxes, newest first; active ones unless includeFinal=true. `metadata.<name>=<value>` finds those with it.",
    query: SANDBOX_READERS,
    answers: { 200: { description: 'A page of sandboxes.', schema: SANDBOX_PAGE } },
    handle: async ({ key, query }, _request, response) => {
      const { metadata, rest } = takeMetadata(query);
      const filters = readQuery(rest, SANDBOX_READERS);
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

const STATES = ['ALL', 'ACTIVE', 'HISTORY', ...OBSERVED_STATES] as const;
type State = (typeof STATES)[number];

const HISTORY_READERS = {
  state: wordReader(STATES, { default: 'ALL' }),
  search: readText,
  from: readTime,
  to: readTime,
  ...NUMBERED_PAGES,
};

const HISTORY_PAGE = object({
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
    query: HISTORY_READERS,
    answers: { 200: { description: 'A page of sandboxes.', schema: HISTORY_PAGE } },
    handle: async ({ accountId, query }, _request, response) => {
      const { state = 'ALL', search, from, to, page = 1, pageSize = 50 } = readQuery(query, HISTORY_READERS);
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

const AUDIT_READERS = {
  kind: wordReader(Object.keys(KINDS) as Kind[], { default: 'operations' }),
  ...NUMBERED_PAGES,
};

const AUDIT_PAGE = object({
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
    query: AUDIT_READERS,
    answers: { 200: { description: 'A page of them.', schema: AUDIT_PAGE } },
    errors: ['SANDBOX_NOT_FOUND'],
    handle: async ({ accountId, params, query }, _request, response) => {
      const { kind = 'operations', page = 1, pageSize = 50 } = readQuery(query, AUDIT_READERS);
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

export function listOfferingsRoute(service: SandboxService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/offerings',
    summary: 'The offerings of sandboxes, with resources and prices.',
    answers: { 200: { description: 'The offerings.', schema: listOf(OFFERING) } },
    handle: async (_visit, _request, response) => {
      sendJson(
        response,
        200,
        service.offerings().map(({ offering }) => offering),
      );
    },
  };
}

const BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { requirements: {}, maxEstimatedHourlyUsd: {}, offeringId: {} },
} as const;

export function createQuoteRoute(service: SandboxService): Route {
  const readBody = jsonBody<Settings<typeof BODY>>(BODY);
  return {
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: '/v1/quotes',
    summary: 'Request a price that is binding for one creation; costs nothing.',
    body: {
      anyOf: [BY_REQUIREMENTS, byId('offeringId')],
      example: { requirements: { capabilities: ['exec', 'files'] }, maxEstimatedHourlyUsd: '0.10' },
    },
    answers: { 201: { description: 'The quote.', schema: QUOTE } },
    errors: ['SELECTION_INVALID', 'REQUIREMENTS_INVALID', 'OFFERING_NOT_FOUND', 'NO_MATCHING_OFFERING'],
    handle: async ({ key }, request, response) => {
      const chosen = choose(await readBody(request), service.offerings());
      const quote = await insertQuote(service.database, key.accountId, chosen, service.now());
      const { billing } = quote.offering;
      sendJson(response, 201, {
        quoteId: quote.id,
        status: 'VALID',
        offeringId: quote.offeringId,
        offering: quote.offering,
        estimatedHourlyUsd: billing.estimatedHourlyUsdByState.RUNNING,
        initialReservationUsd: billing.initialReservationUsd,
        createdAt: showTime(quote.createdAtMs),
        expiresAt: showTime(quote.expiresAtMs),
      });
    },
  };
}

function choose(
  { requirements, maxEstimatedHourlyUsd, offeringId }: Settings<typeof BODY>,
  offered: readonly OfferedInstance[],
): OfferedInstance {
  if ((requirements === undefined) === (offeringId === undefined)) {
    throw fail('SELECTION_INVALID', { message: 'Expected exactly one of requirements and offeringId.' });
  }
  if (requirements === undefined) {
    if (maxEstimatedHourlyUsd !== undefined) {
      throw fail('SELECTION_INVALID', {
        param: 'maxEstimatedHourlyUsd',
        message: 'maxEstimatedHourlyUsd goes with requirements only.',
      });
    }
    const found = offered.find(({ offering, isEnabled }) => isEnabled && offering.id === offeringId);
    if (found === undefined) throw fail('OFFERING_NOT_FOUND', { param: 'offeringId' });
    return found;
  }
  const ceiling = readCeiling(maxEstimatedHourlyUsd, 'maxEstimatedHourlyUsd', 'REQUIREMENTS_INVALID');
  const match = matchOffering(offered, readRequirements(requirements, 'requirements'), ceiling);
  if (match === undefined) throw fail('NO_MATCHING_OFFERING', { param: 'requirements' });
  return match;
}

const QUOTE = object({
  quoteId: shape.uuid,
  status: oneOf('VALID'),
  offeringId: shape.uuid,
  offering: OFFERING,
  estimatedHourlyUsd: shape.usd,
  initialReservationUsd: shape.usd,
  createdAt: shape.time,
  expiresAt: shape.time,
});
