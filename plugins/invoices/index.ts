import { duration, flag } from '../../core/base/setting-schemas';
import { parseDuration } from '../../core/base/settings';
import { definePlugin } from '../../core/gateway/plugin';
import { invoiceRoutes } from './routes';
import { startInvoiceWatch } from './watch';

/** Compares vendors' invoices with the usage records; docs/operating.md. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'invoices',
  summary: "Vendors' reports, compared with the usage records.",
  schema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      compareInvoices: flag(
        "Once a day compares each vendor's report with the usage records, if an upstream has `reporting`.",
        { default: true },
      ),
      compareInvoicesAfter: duration(
        'How long after the end of a day (UTC) its report is read: vendors need a while to count.',
        { default: '12h' },
      ),
    },
  },
  routes: (_settings, gateway) => invoiceRoutes(gateway),
  start: async ({ compareInvoices, compareInvoicesAfter }, gateway) =>
    compareInvoices ? startInvoiceWatch(gateway, parseDuration(compareInvoicesAfter)).stop : async () => undefined,
});
