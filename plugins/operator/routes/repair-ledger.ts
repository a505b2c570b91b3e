import type { Stores } from '../../../core/accounts/accounts';
import { repair } from '../../../core/accounts/repair';
import { NOTHING } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { PASS_READERS, passLedger, VERIFIED } from './ledger-pass';

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
