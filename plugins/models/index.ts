import { definePlugin } from '../../core/gateway/plugin';
import { modelRoutes } from './routes';

/** The list of models that can be called; docs/contract.md, section 1.2. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'models',
  summary: 'The list of models that can be routed now, with prices.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway) => modelRoutes(gateway),
});
