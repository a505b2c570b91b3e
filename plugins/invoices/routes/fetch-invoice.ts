import type { Route } from '../../../core/api/route';
import type { Upstream } from '../../../core/catalog/catalog';
import { fail } from '../../../core/errors';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { readQuery } from '../../../core/http/query';
import { listOf, mapOf, object, orNull, shape } from '../../../core/http/shape';
import { formatUsd } from '../../../core/money';
import { daysOf, readDay } from '../days';
import { toE8 } from '../money';
import { readReport } from '../read-report';
import type { Report } from '../report';

const REPORT = object({
  upstream: shape.text,
  from: shape.text,
  to: shape.text,
  usage: listOf(
    object({
      day: shape.text,
      apiKeyId: orNull(shape.text),
      workspaceId: orNull(shape.text),
      model: shape.text,
      tier: orNull(shape.text),
      counts: mapOf(shape.integer),
    }),
  ),
  costs: listOf(
    object({ day: shape.text, workspaceId: orNull(shape.text), item: orNull(shape.text), reportedUsd: shape.usd }),
  ),
});

export const DAY_READERS = { from: readDay, to: readDay };

/** Finds an upstream of the configuration in force. @throws NOT_FOUND */
export function requireUpstream({ catalog }: PluginGateway, name: string | undefined): Upstream {
  const upstream = catalog.upstreams.find((each) => each.name === name);
  if (upstream === undefined) throw fail('NOT_FOUND', { message: 'The upstream does not exist.' });
  return upstream;
}

export function fetchInvoiceRoute(gateway: PluginGateway): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/invoices/{name}',
    summary: "Fetch the report of an upstream's vendor for some UTC days; yesterday by default.",
    query: DAY_READERS,
    answers: { 200: { description: 'Usage by day, API key, model and tier; cost by day and item.', schema: REPORT } },
    errors: ['CONFLICT', 'REPORT_UNAVAILABLE'],
    handle: async ({ params, query }, _request, response) => {
      const upstream = requireUpstream(gateway, params['name']);
      const days = daysOf(readQuery(query, DAY_READERS));
      const report = await readReport(gateway.egress, upstream, days);
      sendJson(response, 200, { upstream: upstream.name, ...days, ...shownReport(report) });
    },
  };
}

function shownReport({ usage, costs }: Report) {
  return {
    usage: usage.map(({ counts, ...each }) => ({
      ...each,
      counts: Object.fromEntries([...counts].map(([meter, count]) => [meter, Number(count)])),
    })),
    costs: costs.map(({ amountE14, ...each }) => ({ ...each, reportedUsd: formatUsd(toE8(amountE14)) })),
  };
}
