import { definePlugin } from '../../core/gateway/plugin';
import { followDisabledUpstreams } from '../../core/health/disabled-upstreams';
import { startWatch } from '../../core/ledger/verify/watch';
import { DURATION, parseDuration } from '../../core/settings';
import { startInvoiceWatch } from './invoices/watch';
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
      sessionIdle: {
        ...DURATION,
        description: "A session of the operator's page ends this long after its last use.",
        default: '1h',
      },
      sessionLifetime: { ...DURATION, description: 'And this long after the sign-in.', default: '12h' },
      compareInvoices: {
        description: "Once a day sets each vendor's report beside the records, where an upstream has `reporting`.",
        type: 'boolean',
        default: true,
      },
      compareInvoicesAfter: {
        ...DURATION,
        description: 'How long after the end of a day (UTC) its report is read: vendors need a while to count.',
        default: '12h',
      },
    },
  },
  routes: ({ sessionIdle, sessionLifetime }, gateway) =>
    operatorRoutes(gateway, { idleMs: parseDuration(sessionIdle), lifetimeMs: parseDuration(sessionLifetime) }),
  start: async ({ watchLedger, watchEvery, watchAccountsPerSecond, ...invoices }, gateway) => {
    const stops = [await followDisabledUpstreams(gateway)];
    const { ledger, database, log } = gateway;
    if (watchLedger) {
      const everyMs = parseDuration(watchEvery);
      stops.push(startWatch({ ledger, database, log, everyMs, accountsPerSecond: watchAccountsPerSecond }).stop);
    }
    if (invoices.compareInvoices)
      stops.push(startInvoiceWatch(gateway, parseDuration(invoices.compareInvoicesAfter)).stop);
    return async () => {
      for (const stop of stops.reverse()) await stop();
    };
  },
});
