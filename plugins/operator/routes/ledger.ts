import { requireAccount, type Stores } from '../../../core/accounts/accounts';
import { type Repair, repair } from '../../../core/accounts/repair';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { formatUsd } from '../../../core/base/money';
import { type Filters, integerReader, PAGE_READERS, pageOf, readUuid } from '../../../core/http/query';
import { listOf, object, oneOf, orNull, pageShape, shape } from '../../../core/http/shape';
import { askLedger } from '../../../core/ledger/unavailable';
import { INVARIANTS, type Violation } from '../../../core/ledger/verify/invariants';
import { verify, verifyOutbox } from '../../../core/ledger/verify/verify';
import { decodeIdCursor, encodeCursor, toPage } from '../../../core/storage/page';

/** The default number of days for which usage records are compared with ledger entries. */
const DAYS = 7;
const MAX_DAYS = 400;

const PASS_READERS = {
  ...PAGE_READERS,
  account: readUuid,
  days: integerReader(1, MAX_DAYS, { default: DAYS }),
};

/** Verifies one page of accounts. `items` lists the violated invariants, each with the result of `mend`. */
async function passLedger(
  stores: Stores,
  { account, days = DAYS, ...filters }: Filters<typeof PASS_READERS>,
  mend: (each: Violation) => Promise<Repair>,
): Promise<object> {
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
      scope: orNull({
        ...shape.text,
        description:
          'The account, team, member or key whose sums differ: `a:`, `t:`, `m:` or `k:` and its id; or the tag, such as `g:<account>:customer=4711`.',
      }),
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

interface ShortfallRow {
  readonly rid: string;
  readonly account_id: string;
  readonly key_id: string | null;
  readonly amount_e8: bigint;
  readonly shortfall_e8: bigint;
  readonly created_at: Date;
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

export function ledgerRoutes(stores: Stores): readonly Route[] {
  return [
    adminRoute('GET /admin/v1/ledger/verify', {
      role: 'read',
      summary: 'Look for broken invariants of the ledger, a page of accounts at a time, while calls continue.',
      query: PASS_READERS,
      answers: { 200: { description: 'The violations; an empty list if there are none.', schema: VERIFIED } },
      errors: ['NOT_FOUND', 'LEDGER_UNAVAILABLE'],
      handle: ({ filters }) => passLedger(stores, filters, async () => null),
    }),
    adminRoute('POST /admin/v1/ledger/repair', {
      role: 'write',
      summary:
        'Look for broken invariants and repair them by new entries if possible; `repair` describes each repair, null needs a person.',
      query: PASS_READERS,
      answers: { 200: { description: 'The violations, and what was done.', schema: VERIFIED } },
      errors: ['NOT_FOUND', 'LEDGER_UNAVAILABLE'],
      handle: ({ filters, operator }) => passLedger(stores, filters, (each) => repair(stores, each, operator.actor)),
    }),
    adminRoute('GET /admin/v1/ledger/shortfalls', {
      role: 'read',
      summary: 'Charges below the cost of their call because the balance was too low; newest first.',
      query: { account: readUuid, ...PAGE_READERS },
      answers: { 200: { description: 'A page of charges.', schema: pageShape(SHORTFALL) } },
      handle: async ({ filters: { account, ...filters } }) => {
        const { limit, cursor } = pageOf(filters);
        // Sort by reservation id, because the id contains the time.
        const rows = stores
          .database<ShortfallRow>('ledger_entries')
          .where('shortfall_e8', '>', 0)
          .orderBy('rid', 'desc')
          .limit(limit + 1);
        if (account !== undefined) rows.where({ account_id: account });
        const after = decodeIdCursor(cursor);
        if (after !== undefined) rows.where('rid', '<', after);
        const found: ShortfallRow[] = await rows;
        return toPage(found, limit, ({ rid }) => [rid], showShortfall);
      },
    }),
  ];
}
