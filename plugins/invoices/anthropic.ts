import type { Meter } from '../../core/catalog/usage';
import { boundsOf, type Days, dayOf, MOST_DAYS } from './days';
import {
  amountOf,
  asObject,
  countIn,
  type DatedResult,
  type Json,
  type ReportSource,
  readResults,
  textIn,
} from './read-pages';
import { type Report, type ReportedCost, type ReportedUsage, ReportFailure } from './report';

/**
 * Reads Anthropic's usage and cost reports (Admin API): `GET /v1/organizations/usage_report/messages` and `GET
 * /v1/organizations/cost_report`, as published at platform.claude.com/docs/en/api/admin.
 */
export async function readAnthropicReport(source: ReportSource, days: Days): Promise<Report> {
  const { apiKeyId } = source.reporting;
  const groups = ['api_key_id', 'workspace_id', 'model', 'service_tier'];
  const usage = await read(source, '/v1/organizations/usage_report/messages', days, groups, apiKeyId);
  const costs = await read(source, '/v1/organizations/cost_report', days, ['workspace_id', 'description']);
  return { usage: usage.map(toUsage), costs: costs.map(toCost) };
}

async function read(
  source: ReportSource,
  path: string,
  days: Days,
  groups: readonly string[],
  apiKeyId?: string,
): Promise<readonly DatedResult[]> {
  const { start, end } = boundsOf(days);
  const query = new URLSearchParams({
    starting_at: start.toISOString(),
    ending_at: end.toISOString(),
    bucket_width: '1d',
    limit: String(MOST_DAYS),
  });
  for (const group of groups) query.append('group_by[]', group);
  if (apiKeyId !== undefined) query.append('api_key_ids[]', apiKeyId);
  const headers = { 'x-api-key': source.reporting.credential, 'anthropic-version': '2023-06-01' };
  return readResults(source, { path, query, headers, dayIn });
}

function dayIn(bucket: Json): string {
  const ms = Date.parse(textIn(bucket, 'starting_at') ?? '');
  if (Number.isNaN(ms)) throw new ReportFailure('the report is not as documented: starting_at is no time');
  return dayOf(ms);
}

function toUsage({ day, result }: DatedResult): ReportedUsage {
  const written = asObject(result['cache_creation'] ?? {}, 'cache_creation');
  const tools = asObject(result['server_tool_use'] ?? {}, 'server_tool_use');
  const counts: [Meter, bigint][] = [
    ['input', countIn(result, 'uncached_input_tokens')],
    ['cacheRead', countIn(result, 'cache_read_input_tokens')],
    ['cacheWrite', countIn(written, 'ephemeral_5m_input_tokens')],
    ['cacheWrite1h', countIn(written, 'ephemeral_1h_input_tokens')],
    ['output', countIn(result, 'output_tokens')],
    ['webSearch', countIn(tools, 'web_search_requests')],
  ];
  return {
    day,
    apiKeyId: textIn(result, 'api_key_id'),
    workspaceId: textIn(result, 'workspace_id'),
    model: textIn(result, 'model') ?? '',
    tier: textIn(result, 'service_tier'),
    counts: new Map(counts),
  };
}

/** Reads one cost. Anthropic sends amounts as decimal strings in cents. */
function toCost({ day, result }: DatedResult): ReportedCost {
  const currency = textIn(result, 'currency') ?? 'USD';
  if (currency !== 'USD') throw new ReportFailure(`the report is in ${currency}, not in USD`);
  return {
    day,
    workspaceId: textIn(result, 'workspace_id'),
    item: textIn(result, 'description'),
    amountE14: amountOf(textIn(result, 'amount') ?? '', 2),
  };
}
