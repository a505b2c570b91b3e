import { requireAccount, type Stores } from '../../../core/accounts/accounts';
import type { Repair } from '../../../core/accounts/repair';
import { integerReader, PAGE_READERS, pageOf, readQuery, readUuid } from '../../../core/http/query';
import { listOf, object, oneOf, orNull, shape } from '../../../core/http/shape';
import { askLedger } from '../../../core/ledger/unavailable';
import { INVARIANTS, type Violation } from '../../../core/ledger/verify/invariants';
import { verify, verifyOutbox } from '../../../core/ledger/verify/verify';
import { decodeIdCursor, encodeCursor } from '../../../core/storage/page';

/** The default number of days whose usage records are compared with their entries. */
const DAYS = 7;
const MOST_DAYS = 400;

export const PASS_READERS = {
  ...PAGE_READERS,
  account: readUuid,
  days: integerReader(1, MOST_DAYS, { default: DAYS }),
};

/** Verifies one page of accounts. `items` lists the violated invariants, each with the result of `mend`. */
export async function passLedger(
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
export const VERIFIED = object({
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
