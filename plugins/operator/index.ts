import { definePlugin } from '../../core/gateway/plugin';
import { followTakenOut } from '../../core/health/taken-out-upstreams';
import { startWatch } from '../../core/ledger/verify/watch';
import { DURATION, parseDuration } from '../../core/settings';
import { operatorRoutes } from './routes';

/** The operator's API under /admin/v1; docs/contract.md, section 7. */
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
  routes: (_settings, gateway) => operatorRoutes(gateway),
  start: async ({ watchLedger, watchEvery, watchAccountsPerSecond }, gateway) => {
    const stopFollowing = await followTakenOut(gateway);
    if (!watchLedger) return stopFollowing;
    const { ledger, database, log } = gateway;
    const everyMs = parseDuration(watchEvery);
    const watch = startWatch({ ledger, database, log, everyMs, accountsPerSecond: watchAccountsPerSecond });
    return async () => {
      await watch.stop();
      await stopFollowing();
    };
  },
});
