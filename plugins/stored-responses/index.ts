import { definePlugin } from '../../core/gateway/plugin';
import { storedResponseRoutes } from './routes';

/** Access to responses that a vendor keeps (Responses protocol); docs/contract.md, section 4.6. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'stored-responses',
  summary: 'Shows, cancels and deletes the responses that a vendor keeps, for the account that made them.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway) => storedResponseRoutes(gateway),
});
