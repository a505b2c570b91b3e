import { definePlugin } from '../../core/gateway/plugin';
import { documentRoutes } from './routes';

/** The OpenAPI documents of the loaded configuration and plugins; docs/contract.md, section 1.3. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'openapi',
  summary: 'The OpenAPI documents of both listeners, as the configuration in force makes them.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway) => documentRoutes(gateway),
});
