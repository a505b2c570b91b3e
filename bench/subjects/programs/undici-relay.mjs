/** The limit for Node: what a gateway costs that does nothing for its money. */
import { serveRelay } from './relay.mjs';

serveRelay();
