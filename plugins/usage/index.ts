import { definePlugin } from '../../core/plugin';
import { adminRoutes } from './admin';
import { balanceRoute } from './balance';
import { consoleRoutes } from './console';
import { usageRoutes } from './usage';

/** What calls used and cost; contract sections 1 and 6. */
export default definePlugin({
  name: 'usage',
  summary: 'Balance, usage records and their CSV export.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway) => [
    balanceRoute(gateway.ledger),
    ...usageRoutes(gateway),
    ...adminRoutes(gateway),
    ...consoleRoutes(gateway),
  ],
});
