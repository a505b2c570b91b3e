/** The yardstick: the bare relay plus the ledger's two steps per call in a real Redis. */
import { openLedger, reserve } from './ledger.mjs';
import { serveRelay } from './relay.mjs';

const ledger = await openLedger();
serveRelay({ reserve: ({ model }) => reserve(ledger, model) });
