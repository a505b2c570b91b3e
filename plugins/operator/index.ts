import { definePlugin } from '../../core/plugin';
import { followTakenOut } from '../../core/taken-out-upstreams';
import { accountRoutes } from './accounts';
import { auditRoutes } from './audit';
import { configRoutes } from './config';
import { creditRoutes } from './credits';
import { keyRoutes } from './keys';
import { upstreamRoutes } from './upstreams';
import { userRoutes } from './users';

/** The operator's desk under /admin/v1; contract section 7. */
export default definePlugin({
  name: 'operator',
  summary: 'Accounts, keys, credits and users for whoever runs the gateway.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway) => {
    const { database, ledger } = gateway;
    const stores = { database, ledger };
    return [
      ...accountRoutes(stores),
      ...creditRoutes(stores),
      ...keyRoutes(stores),
      ...userRoutes(database),
      ...auditRoutes(database),
      ...configRoutes(gateway),
      ...upstreamRoutes(gateway),
    ];
  },
  start: (_settings, gateway) => followTakenOut(gateway),
});
