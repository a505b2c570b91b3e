import type { Stores } from '../../../core/accounts/accounts';
import { NOTHING } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { PASS_READERS, passLedger, VERIFIED } from './ledger-pass';

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
