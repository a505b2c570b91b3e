import { duration, flag, number } from '../../core/base/setting-schemas';
import { parseDuration } from '../../core/base/settings';
import { definePlugin } from '../../core/gateway/plugin';
import { followDisabledUpstreams } from '../../core/health/disabled-upstreams';
import { startWatch } from '../../core/ledger/verify/watch';
import { operatorRoutes } from './routes';

/** The operator's API under /admin/v1 (docs/contract.md, section 7) and page under /operator (docs/operator.md). */
export default definePlugin({
  contract: 'plugin/1',
  name: 'operator',
  summary: "The operator's API and page, and a watch over the ledger.",
  schema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      watchLedger: flag('This process checks all accounts regularly and reports violated invariants.', {
        default: true,
      }),
      watchEvery: duration('Time between two passes.', { default: '10m' }),
      watchAccountsPerSecond: number('Highest speed of a pass.', { exclusiveMinimum: 0, default: 100 }),
      sessionIdle: duration("A session of the operator's page ends this long after its last use.", { default: '1h' }),
      sessionLifetime: duration("A session of the operator's page ends this long after the sign-in.", {
        default: '12h',
      }),
    },
  },
  routes: ({ sessionIdle, sessionLifetime }, gateway) =>
    operatorRoutes(gateway, { idleMs: parseDuration(sessionIdle), lifetimeMs: parseDuration(sessionLifetime) }),
  start: async ({ watchLedger, watchEvery, watchAccountsPerSecond }, gateway) => {
    const stops = [await followDisabledUpstreams(gateway)];
    const { ledger, database, log } = gateway;
    if (watchLedger) {
      const everyMs = parseDuration(watchEvery);
      stops.push(startWatch({ ledger, database, log, everyMs, accountsPerSecond: watchAccountsPerSecond }).stop);
    }
    return async () => {
      for (const stop of stops.reverse()) await stop();
    };
  },
});
