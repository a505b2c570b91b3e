/** The yardstick: the bare relay and the ledger's two steps a call in a real Redis, nothing else. */
import { openLedger, reserve } from './ledger.mjs';
import { serveRelay } from './relay.mjs';

const ledger = await openLedger();
serveRelay({ reserve: ({ model }) => reserve(ledger, model) });
