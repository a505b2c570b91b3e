import { definePlugin } from '../../core/plugin';
import { modelRoutes } from './routes';

/** Which models can be called; contract section 1. */
export default definePlugin({
  name: 'models',
  summary: 'The list of models that can be routed now, with prices.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway) => modelRoutes(gateway),
});
