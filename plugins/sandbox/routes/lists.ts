import type { Knex } from 'knex';
import { keysOfMember } from '../../../core/accounts/member-keys';
import { type AccountRoute, asSessionRoute, type Route } from '../../../core/api/route';
import type { Settings } from '../../../core/base/settings';
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
import { EVERYONE } from '../../../core/sign-in/member-roles';
import { newestPage } from '../../../core/storage/page';
import { BY_REQUIREMENTS, byId, chooseForQuote } from '../admission/creation';
import type { Sandbox } from '../lifecycle/sandbox';
import { FINAL_STATES, OBSERVED_STATES } from '../lifecycle/states';
import type { SandboxService } from '../service';
import { findSandbox } from '../store/queries';
import { insertQuote } from '../store/quotes';
import { SEGMENTS, showEvent, showOperation, showPeriod, showSandbox, showSegment } from '../store/record';
import { fromRow, showTime } from '../store/rows';
import { EVENT, OFFERING, OPERATION, PERIOD, SANDBOX, SEGMENT } from '../store/shapes';
import { byAccount, byKey } from './parts';

/** The query parameters of lists with numbered pages. Answers of such lists have the total. */
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

/** The lists of a sandbox's audit. Each begins with the oldest row, so that pages stay the same while new rows are written. */
const KINDS = {
  operations: { table: 'sandbox_operations', order: 'id', show: showOperation },
  events: { table: 'sandbox_events', order: 'sequence', show: showEvent },
  usageSegments: { table: 'usage_segments', order: 'sequence', show: showSegment },
  billingPeriods: { table: 'billing_periods', order: 'sequence', show: showPeriod },
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

const BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { requirements: {}, maxEstimatedHourlyUsd: {}, offeringId: {} },
} as const;

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

/** The routes that list offerings, sandboxes, and the history and audit of sandboxes; and the route that makes a quote. */
export function listRoutes(service: SandboxService): readonly Route[] {
  const { database } = service;
  const readQuoteBody = jsonBody<Settings<typeof BODY>>(BODY);
  const history = historyRoute(database);
  const audit = auditRoute(database);
  return [
    byKey('GET', '/v1/offerings', 'The offerings of sandboxes, with resources and prices.', {
      answers: { 200: { description: 'The offerings.', schema: listOf(OFFERING) } },
      handle: async (_visit, _request, response) => {
        const offerings = service.offerings().map(({ offering }) => offering);
        sendJson(response, 200, offerings);
      },
    }),
    byKey('POST', '/v1/quotes', 'Request a price that is binding for one creation; costs nothing.', {
      body: {
        anyOf: [BY_REQUIREMENTS, byId('offeringId')],
        example: { requirements: { capabilities: ['exec', 'files'] }, maxEstimatedHourlyUsd: '0.10' },
      },
      answers: { 201: { description: 'The quote.', schema: QUOTE } },
      errors: ['SELECTION_INVALID', 'REQUIREMENTS_INVALID', 'OFFERING_NOT_FOUND', 'NO_MATCHING_OFFERING'],
      handle: async ({ key }, request, response) => {
        const chosen = chooseForQuote(await readQuoteBody(request), service.offerings());
        const quote = await insertQuote(database, key.accountId, chosen, service.now());
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
    }),
    byKey(
      'GET',
      '/v1/sandboxes',
      "The account's sandboxes, newest first; active ones unless includeFinal=true. `metadata.<name>=<value>` finds those with it.",
      {
        query: SANDBOX_READERS,
        answers: { 200: { description: 'A page of sandboxes.', schema: SANDBOX_PAGE } },
        handle: async ({ key, query }, _request, response) => {
          const { metadata, rest } = takeMetadata(query);
          const filters = readQuery(rest, SANDBOX_READERS);
          const found = database('sandboxes').where({ account_id: key.accountId, admission: 'ACCEPTED' });
          if (filters.state !== undefined) found.whereIn('observed_state', filters.state);
          else if (filters.includeFinal !== true) found.whereNotIn('observed_state', FINAL_STATES);
          if (filters.offeringId !== undefined) found.where({ offering_id: filters.offeringId });
          for (const [name, value] of metadata) found.whereRaw('metadata ->> ?::text = ?', [name, value]);
          const [counted] = await found.clone().count({ total: '*' });
          const page = await newestPage(found, pageOf(filters), async (row) => showSandbox(fromRow<Sandbox>(row)));
          sendJson(response, 200, { ...page, total: Number(counted?.['total'] ?? 0) });
        },
      },
    ),
    history,
    asSessionRoute(history, '/console/api/sandboxes', EVERYONE),
    audit,
    asSessionRoute(audit, '/console/api/sandboxes/{id}/audit', EVERYONE),
  ];
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

function historyRoute(database: Knex): AccountRoute {
  return byAccount(
    'GET',
    '/v1/sandbox-history',
    'Sandboxes of all times, newest first, with how many are in each state.',
    {
      query: HISTORY_READERS,
      answers: { 200: { description: 'A page of sandboxes.', schema: HISTORY_PAGE } },
      handle: async ({ accountId, memberId, query }, _request, response) => {
        const { state = 'ALL', search, from, to, page = 1, pageSize = 50 } = readQuery(query, HISTORY_READERS);
        const found = narrow(database('sandboxes'), accountId, { search, from, to });
        if (memberId !== undefined) found.whereIn('key_id', keysOfMember(memberId));
        const counted: { observed_state: string; count: bigint }[] = await found
          .clone()
          .groupBy('observed_state')
          .select('observed_state')
          .count({ count: '*' });
        const counts = Object.fromEntries(counted.map((row) => [row.observed_state, Number(row.count)]));
        const countOf = (wanted: State) => statesOf(wanted).reduce((total, each) => total + (counts[each] ?? 0), 0);
        const rows: Record<string, unknown>[] = await found
          .whereIn('observed_state', statesOf(state))
          .orderBy('id', 'desc')
          .limit(pageSize)
          .offset((page - 1) * pageSize);
        sendJson(response, 200, {
          items: rows.map((row) => showSandbox(fromRow<Sandbox>(row))),
          total: countOf(state),
          stateCounts: Object.fromEntries(STATES.map((each) => [each, countOf(each)])),
          page,
          pageSize,
        });
      },
    },
  );
}

interface ListFilter {
  readonly search: string | undefined;
  readonly from: Date | undefined;
  readonly to: Date | undefined;
}

/** Restricts a query to the sandboxes that match. The search text may match the id, the idempotency key, the offering's name or the metadata. */
function narrow(rows: Knex.QueryBuilder, accountId: string, { search, from, to }: ListFilter): Knex.QueryBuilder {
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

function auditRoute(database: Knex): AccountRoute {
  return byAccount(
    'GET',
    '/v1/sandboxes/{id}/audit',
    'All operations, events, usage segments or billing periods of a sandbox, oldest first.',
    {
      query: AUDIT_READERS,
      answers: { 200: { description: 'A page of them.', schema: AUDIT_PAGE } },
      errors: ['SANDBOX_NOT_FOUND'],
      handle: async ({ accountId, memberId, params, query }, _request, response) => {
        const { kind = 'operations', page = 1, pageSize = 50 } = readQuery(query, AUDIT_READERS);
        const { id } = await findSandbox(database, accountId, params['id'] ?? '', memberId);
        const { table, order, show } = KINDS[kind];
        const [counted] = await database(table).where({ sandbox_id: id }).count({ total: '*' });
        const { rows } = await database.raw<{ rows: Record<string, unknown>[] }>(
          `SELECT * FROM (${kind === 'usageSegments' ? SEGMENTS : `SELECT * FROM ${table}`}) AS page
           WHERE sandbox_id = :id ORDER BY ${order} LIMIT :limit OFFSET :offset`,
          { id, limit: pageSize, offset: (page - 1) * pageSize },
        );
        const items = rows.map((row) => show(fromRow<never>(row)));
        sendJson(response, 200, { items, kind, page, pageSize, total: Number(counted?.['total'] ?? 0) });
      },
    },
  );
}
