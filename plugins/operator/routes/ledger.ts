import type { Knex } from 'knex';
import { requireAccount, type Stores } from '../../../core/accounts/accounts';
import { type Repair, repair } from '../../../core/accounts/repair';
import { NOTHING } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { integerReader, PAGE_READERS, pageOf, readQuery, readUuid } from '../../../core/http/query';
import { listOf, object, oneOf, orNull, pageOf as pageShape, shape } from '../../../core/http/shape';
import { askLedger } from '../../../core/ledger/unavailable';
import { INVARIANTS, type Violation } from '../../../core/ledger/verify/invariants';
import { verify, verifyOutbox } from '../../../core/ledger/verify/verify';
import { formatUsd } from '../../../core/money';
import { decodeIdCursor, encodeCursor, toPage } from '../../../core/storage/page';

/** The default number of days whose usage records are compared with their entries. */
const DAYS = 7;
const MOST_DAYS = 400;

const PASS_READERS = {
  ...PAGE_READERS,
  account: readUuid,
  days: integerReader(1, MOST_DAYS, { default: DAYS }),
};

/** Verifies one page of accounts. `items` lists the violated invariants, each with the result of `mend`. */
async function passLedger(
  stores: Stores,
  query: URLSearchParams,
  mend: (each: Violation) => Promise<Repair>,
): Promise<object> {
  const { account, days = DAYS, ...filters } = readQuery(query, PASS_READERS);
  const { limit, cursor } = pageOf(filters);
  if (account !== undefined) await requireAccount(stores.database, account);
  const after = decodeIdCursor(cursor);
  const outbox = after === undefined && account === undefined ? await askLedger(() => verifyOutbox(stores)) : [];
  const done = await askLedger(() => verify(stores, { limit, after, accountId: account, days }));
  const items: object[] = [];
  for (const each of [...outbox, ...done.violations]) {
    items.push({ ...each, holds: INVARIANTS[each.invariant], repair: await askLedger(() => mend(each)) });
  }
  const nextCursor = done.next === undefined ? null : encodeCursor([done.next]);
  return { items, nextCursor, accounts: done.accounts, entries: done.entries };
}

/** The result of `passLedger` in the OpenAPI document. */
const VERIFIED = object({
  items: listOf(
    object({
      invariant: oneOf(...Object.keys(INVARIANTS)),
      holds: { ...shape.text, description: 'What must hold, in words.' },
      accountId: orNull(shape.uuid),
      seq: orNull(shape.integer),
      keyId: orNull(shape.uuid),
      rid: orNull(shape.text),
      expected: shape.text,
      found: shape.text,
      repair: orNull(oneOf('expired', 'credit_sent', 'charge_credited')),
    }),
  ),
  nextCursor: orNull(shape.text),
  accounts: shape.integer,
  entries: shape.integer,
});

export function verifyLedgerRoute(stores: Stores): Route {
  const readNothing = jsonBody<object>(NOTHING);
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/ledger/verify',
    summary: 'Look for broken invariants of the ledger, a page of accounts at a time, while calls continue.',
    query: PASS_READERS,
    answers: { 200: { description: 'The violations; an empty list if there are none.', schema: VERIFIED } },
    errors: ['NOT_FOUND', 'LEDGER_UNAVAILABLE'],
    handle: async ({ query }, request, response) => {
      await readNothing(request);
      sendJson(response, 200, await passLedger(stores, query, async () => null));
    },
  };
}

export function repairLedgerRoute(stores: Stores): Route {
  const readNothing = jsonBody<object>(NOTHING);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/ledger/repair',
    summary:
      'Look for broken invariants and repair them by new entries if possible; `repair` describes each repair, null needs a person.',
    query: PASS_READERS,
    body: NOTHING,
    answers: { 200: { description: 'The violations, and what was done.', schema: VERIFIED } },
    errors: ['NOT_FOUND', 'LEDGER_UNAVAILABLE'],
    handle: async ({ query, operator }, request, response) => {
      await readNothing(request);
      sendJson(response, 200, await passLedger(stores, query, (each) => repair(stores, each, operator.actor)));
    },
  };
}

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
