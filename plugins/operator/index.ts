import { startWatch } from '../../core/ledger/watch';
import { definePlugin } from '../../core/plugin';
import { DURATION, parseDuration } from '../../core/settings';
import { followTakenOut } from '../../core/taken-out-upstreams';
import { accountRoutes } from './accounts';
import { auditRoutes } from './audit';
import { configRoutes } from './config';
import { creditRoutes } from './credits';
import { keyRoutes } from './keys';
import { ledgerRoutes } from './ledger';
import { revisionRoutes } from './revisions';
import { upstreamRoutes } from './upstreams';
import { userRoutes } from './users';

/** The operator's desk under /admin/v1; contract section 7. */
export default definePlugin({
  name: 'operator',
  summary: 'Accounts, keys, credits and users for whoever runs the gateway, and a watch over the ledger.',
  schema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      watchLedger: {
        description: 'This process goes over all accounts by itself and says where an invariant does not hold.',
        type: 'boolean',
        default: true,
      },
      watchEvery: { ...DURATION, description: 'From one pass to the next.', default: '10m' },
      watchAccountsPerSecond: {
        description: 'The pass goes no faster.',
        type: 'number',
        exclusiveMinimum: 0,
        default: 100,
      },
    },
  },
  routes: (_settings, gateway) => {
    const { database, ledger } = gateway;
    const stores = { database, ledger };
    return [
      ...accountRoutes(stores),
      ...creditRoutes(stores),
      ...keyRoutes({ ...stores, keys: gateway.keys }),
      ...userRoutes(database),
      ...auditRoutes(database),
      ...ledgerRoutes(stores),
      ...configRoutes(gateway),
      ...revisionRoutes(gateway),
      ...upstreamRoutes(gateway),
    ];
  },
  start: async ({ watchLedger, watchEvery, watchAccountsPerSecond }, gateway) => {
    const stopFollowing = await followTakenOut(gateway);
    if (!watchLedger) return stopFollowing;
    const { ledger, database, log } = gateway;
    const everyMs = parseDuration(watchEvery);
    const stopWatching = startWatch({ ledger, database, log, everyMs, accountsPerSecond: watchAccountsPerSecond });
    return async () => {
      await stopWatching();
      await stopFollowing();
    };
  },
});
