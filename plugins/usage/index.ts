import { definePlugin } from '../../core/gateway/plugin';
import { usageRoutes } from './routes';

/** The endpoints for the usage and cost of calls; docs/contract.md, sections 6 and 7. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'usage',
  summary: 'Balance, events, usage records and their CSV export.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway) => usageRoutes(gateway),
});
