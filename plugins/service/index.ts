import { definePlugin } from '../../core/gateway/plugin';
import { serviceRoutes } from './routes';

export default definePlugin({
  contract: 'plugin/1',
  name: 'service',
  summary: 'The service about itself: card, health, readiness, and what of the protocols is not offered.',
  schema: { type: 'object', properties: {} },
  routes: (_settings, gateway) => serviceRoutes(gateway),
});
