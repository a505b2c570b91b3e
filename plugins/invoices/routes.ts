import { adminRoute } from '../../core/api/json-routes';
import type { Route } from '../../core/api/route';
import { fail } from '../../core/base/errors';
import { formatUsd } from '../../core/base/money';
import { ATTEMPT_CAUSES } from '../../core/catalog/attempt-fields';
import type { Upstream } from '../../core/catalog/catalog';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { listOf, mapOf, object, oneOf, orNull, shape } from '../../core/http/shape';
import { type Comparison, compareUpstream } from './compare';
import { daysOf, type Report, readDay, toE8 } from './report';
import { readReport } from './vendors';

const COMPARISON = object({
  upstream: shape.text,
  from: shape.text,
  to: shape.text,
  isAlarm: { ...shape.yes, description: 'A difference is above `reporting.alarmAboveUsd` of the upstream.' },
  counts: listOf(
    object({
      day: shape.text,
      model: shape.text,
      meter: shape.text,
      reported: { ...shape.integer, description: "The vendor's count." },
      recorded: { ...shape.integer, description: 'The count of the records.' },
      difference: { ...shape.integer, description: 'How much more the vendor counts.' },
      differenceUsd: { ...orNull(shape.usd), description: "At the model's plain price; null where it has none." },
      causes: listOf(object({ cause: oneOf(...ATTEMPT_CAUSES, 'expired', 'unexplained'), attempts: shape.integer })),
    }),
  ),
  costs: listOf(
    object({
      day: shape.text,
      reportedUsd: shape.usd,
      recordedUsd: { ...shape.usd, description: 'All attempts at the prices of the configuration.' },
      differenceUsd: shape.usd,
      ofCountsUsd: { ...orNull(shape.usd), description: 'The part that the counts explain.' },
      ofPricesUsd: { ...orNull(shape.usd), description: 'The part that remains unexplained.' },
      chargedUsd: { ...shape.usd, description: 'What customers paid.' },
      workspaces: listOf(object({ workspaceId: orNull(shape.text), reportedUsd: shape.usd })),
      isAlarm: shape.yes,
    }),
  ),
  causes: listOf(
    object({
      day: shape.text,
      cause: oneOf(...ATTEMPT_CAUSES),
      attempts: shape.integer,
      uncertain: {
        ...shape.integer,
        description: 'Attempts whose usage the upstream may have charged and not reported.',
      },
      recordedUsd: shape.usd,
    }),
  ),
});

function shownComparison({ counts, costs, causes }: Comparison) {
  return {
    isAlarm: costs.some(({ isAlarm }) => isAlarm),
    counts: counts.map(({ differenceE8, ...each }) => ({
      ...each,
      reported: Number(each.reported),
      recorded: Number(each.recorded),
      difference: Number(each.difference),
      differenceUsd: usdOrNull(differenceE8),
      causes: each.causes.map(({ cause, attempts }) => ({ cause, attempts: Number(attempts) })),
    })),
    costs: costs.map(({ day, isAlarm, workspaces, ...each }) => ({
      day,
      reportedUsd: formatUsd(each.reportedE8),
      recordedUsd: formatUsd(each.recordedE8),
      differenceUsd: formatUsd(each.differenceE8),
      ofCountsUsd: usdOrNull(each.ofCountsE8),
      ofPricesUsd: usdOrNull(each.ofPricesE8),
      chargedUsd: formatUsd(each.chargedE8),
      workspaces: workspaces.map(({ workspaceId, reportedE8 }) => ({
        workspaceId,
        reportedUsd: formatUsd(reportedE8),
      })),
      isAlarm,
    })),
    causes: causes.map(({ day, cause, attempts, uncertain, costE8 }) => ({
      day,
      cause,
      attempts: Number(attempts),
      uncertain: Number(uncertain),
      recordedUsd: formatUsd(costE8),
    })),
  };
}

function usdOrNull(amountE8: bigint | null): string | null {
  return amountE8 === null ? null : formatUsd(amountE8);
}

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

/** Finds an upstream of the configuration in force. @throws NOT_FOUND */
function requireUpstream({ catalog }: PluginGateway, name: string): Upstream {
  const upstream = catalog.upstreams.find((each) => each.name === name);
  if (upstream === undefined) throw fail('NOT_FOUND', { message: 'The upstream does not exist.' });
  return upstream;
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

export function invoiceRoutes(gateway: PluginGateway): readonly Route[] {
  const query = { from: readDay, to: readDay };
  return [
    adminRoute('GET /admin/v1/invoices/{name}', {
      role: 'read',
      summary: "Fetch the report of an upstream's vendor for some UTC days; yesterday by default.",
      query,
      answers: {
        200: { description: 'Usage by day, API key, model and tier; cost by day and item.', schema: REPORT },
      },
      errors: ['CONFLICT', 'REPORT_UNAVAILABLE'],
      handle: async ({ params, filters }) => {
        const upstream = requireUpstream(gateway, params.name);
        const days = daysOf(filters);
        const report = await readReport(gateway.egress, upstream, days);
        return { upstream: upstream.name, ...days, ...shownReport(report) };
      },
    }),
    adminRoute('GET /admin/v1/invoices/{name}/comparison', {
      role: 'read',
      summary:
        "Compare the report of an upstream's vendor with the usage records for some UTC days; yesterday by default.",
      query,
      answers: { 200: { description: 'Every difference, with its known causes.', schema: COMPARISON } },
      errors: ['CONFLICT', 'REPORT_UNAVAILABLE'],
      handle: async ({ params, filters }) => {
        const upstream = requireUpstream(gateway, params.name);
        const days = daysOf(filters);
        const comparison = await compareUpstream(gateway, upstream, days);
        return { upstream: upstream.name, ...days, ...shownComparison(comparison) };
      },
    }),
  ];
}
