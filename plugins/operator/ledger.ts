import type { Stores } from '../../core/accounts';
import { requireAccount } from '../../core/accounts';
import { jsonBody, sendJson } from '../../core/http';
import { INVARIANTS, type Violation } from '../../core/ledger/invariants';
import { type Repair, repair } from '../../core/ledger/repair';
import { askLedger } from '../../core/ledger/unavailable';
import { verify, verifyOutbox } from '../../core/ledger/verify';
import { decodeIdCursor, encodeCursor } from '../../core/page';
import type { Handler, Route } from '../../core/plugin';
import { integerReader, PAGE_READERS, pageOf, readQuery, readUuid } from '../../core/query';
import { listOf, object, oneOf, orNull, shape } from '../../core/shape';
import { ADMIN, NOTHING } from './fields';

/** Usage records of how many days are compared with their entries, unless the question names another number. */
const DAYS = 7;
const MOST_DAYS = 400;

const READERS = {
  ...PAGE_READERS,
  account: readUuid,
  days: integerReader(1, MOST_DAYS, { default: DAYS }),
};

/** `items` are the places where an invariant does not hold, of one page of accounts; none is what everybody hopes for. */
export function ledgerRoutes(stores: Stores): Route[] {
  const readNothing = jsonBody<object>(NOTHING);
  const look =
    (mend: (each: Violation) => Promise<Repair>): Handler =>
    async ({ query }, request, response) => {
      await readNothing(request);
      const { account, days = DAYS, ...filters } = readQuery(query, READERS);
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
      sendJson(response, 200, { items, nextCursor, accounts: done.accounts, entries: done.entries });
    };
  return [
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/ledger/verify',
      summary: 'Look for broken invariants of the ledger, a page of accounts at a time, while calls go on.',
      query: READERS,
      answers: { 200: { description: 'What does not hold; nothing when all is well.', schema: VERIFIED } },
      errors: ['NOT_FOUND', 'LEDGER_UNAVAILABLE'],
      handle: look(async () => null),
    },
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/ledger/repair',
      summary: 'The same, and make good by entries what can be; `repair` says how, null that a person has to look.',
      query: READERS,
      body: NOTHING,
      answers: { 200: { description: 'What did not hold, and what was done.', schema: VERIFIED } },
      errors: ['NOT_FOUND', 'LEDGER_UNAVAILABLE'],
      handle: look((each) => repair(stores, each, ADMIN)),
    },
  ];
}

const VERIFIED = object({
  items: listOf({
    type: 'object',
    required: ['invariant', 'holds'],
    properties: {
      invariant: shape.text,
      holds: shape.text,
      repair: orNull(oneOf('expired', 'credit_sent', 'charge_credited')),
    },
  }),
  nextCursor: orNull(shape.text),
  accounts: shape.integer,
  entries: shape.integer,
});
