import { definePlugin } from '../../core/gateway/plugin';
import { serviceRoutes } from './routes';

export default definePlugin({
  contract: 'plugin/1',
  name: 'service',
  summary:
    'Card, health, readiness and metrics of the service, and endpoints of the protocols that it does not implement.',
  schema: { type: 'object', properties: {} },
  routes: (_settings, gateway) => serviceRoutes(gateway),
});
