import { fail } from '../../core/base/errors';
import type { Reporting, Upstream } from '../../core/catalog/catalog';
import type { Meter } from '../../core/catalog/usage';
import type { Egress } from '../../core/wire/egress';
import {
  amountOf,
  countIn,
  type DatedResult,
  type Json,
  type ReportSource,
  readResults,
  requireObject,
  textIn,
} from './read-pages';
import {
  boundsOf,
  type Days,
  MAX_REPORT_DAYS,
  type Report,
  type ReportedCost,
  type ReportedUsage,
  ReportFailure,
  utcDayOf,
} from './report';

const TIMEOUTS = { connectMs: 30_000, headersMs: 60_000, idleMs: 30_000 };

/** Reads the vendor's report of an upstream for these days. @throws CONFLICT if no report is configured; REPORT_UNAVAILABLE if it cannot be read */
export async function readReport(
  egress: Egress,
  { name, allowPrivate, reporting }: Upstream,
  days: Days,
  signal?: AbortSignal,
): Promise<Report> {
  const its = requireReporting(name, reporting);
  const destination = { name: `${name} reporting`, url: its.url, allowPrivate, timeouts: TIMEOUTS };
  try {
    return await READERS[its.vendor]({ egress, destination, reporting: its, signal }, days);
  } catch (error) {
    if (!(error instanceof ReportFailure)) throw error;
    const message = `The report of "${name}" could not be read: ${error.message}.`;
    throw fail('REPORT_UNAVAILABLE', { message, cause: error });
  }
}

/** Returns the upstream's settings for reports. @throws CONFLICT if they or their credential are missing */
function requireReporting(name: string, reporting: Reporting | undefined): ReportSource['reporting'] {
  if (reporting === undefined)
    throw fail('CONFLICT', {
      message: `The upstream "${name}" has no \`reporting\` in gateway.config.yml, so no report can be read. Add it.`,
    });
  const { credential, missing = 'its credential cannot be read' } = reporting;
  if (credential === undefined)
    throw fail('CONFLICT', { message: `The report of "${name}" cannot be read: ${missing}.` });
  return { ...reporting, credential };
}

const READERS = { anthropic: readAnthropic, openai: readOpenAi } as const;

/**
 * Reads Anthropic's usage and cost reports (Admin API): `GET /v1/organizations/usage_report/messages` and `GET
 * /v1/organizations/cost_report`, as published at platform.claude.com/docs/en/api/admin.
 */
async function readAnthropic(source: ReportSource, days: Days): Promise<Report> {
  const { apiKeyId, credential } = source.reporting;
  const { start, end } = boundsOf(days);
  const span = { starting_at: start.toISOString(), ending_at: end.toISOString() };
  const headers = { 'x-api-key': credential, 'anthropic-version': '2023-06-01' };
  const read = (path: string, groups: readonly string[], keyId?: string) =>
    readResults(source, { path, query: queryOf(span, groups, keyId), headers, dayIn });
  const groups = ['api_key_id', 'workspace_id', 'model', 'service_tier'];
  const usage = await read('/v1/organizations/usage_report/messages', groups, apiKeyId);
  const costs = await read('/v1/organizations/cost_report', ['workspace_id', 'description']);
  return { usage: usage.map(toUsage), costs: costs.map(toCost) };

  function dayIn(bucket: Json): string {
    const ms = Date.parse(textIn(bucket, 'starting_at') ?? '');
    if (Number.isNaN(ms)) throw new ReportFailure('the report is not as documented: starting_at is no time');
    return utcDayOf(ms);
  }

  function toUsage({ day, result }: DatedResult): ReportedUsage {
    const written = requireObject(result['cache_creation'] ?? {}, 'cache_creation');
    const tools = requireObject(result['server_tool_use'] ?? {}, 'server_tool_use');
    return usageOf(day, result, 'workspace_id', [
      ['input', countIn(result, 'uncached_input_tokens')],
      ['cacheRead', countIn(result, 'cache_read_input_tokens')],
      ['cacheWrite', countIn(written, 'ephemeral_5m_input_tokens')],
      ['cacheWrite1h', countIn(written, 'ephemeral_1h_input_tokens')],
      ['output', countIn(result, 'output_tokens')],
      ['webSearch', countIn(tools, 'web_search_requests')],
    ]);
  }

  /** Anthropic sends amounts as decimal strings in cents. */
  function toCost({ day, result }: DatedResult): ReportedCost {
    requireUsd(result);
    return {
      day,
      workspaceId: textIn(result, 'workspace_id'),
      item: textIn(result, 'description'),
      amountE14: amountOf(textIn(result, 'amount') ?? '', 2),
    };
  }
}

/**
 * Reads OpenAI's usage and costs APIs: `GET /v1/organization/usage/completions`, `…/usage/embeddings` and `GET
 * /v1/organization/costs`, as published in the API reference and in the types of the npm package `openai`.
 */
async function readOpenAi(source: ReportSource, days: Days): Promise<Report> {
  const { apiKeyId, credential } = source.reporting;
  const { start, end } = boundsOf(days);
  const span = { start_time: String(start.getTime() / 1_000), end_time: String(end.getTime() / 1_000) };
  const headers = { authorization: `Bearer ${credential}` };
  const dayIn = (bucket: Json) => utcDayOf(Number(countIn(bucket, 'start_time')) * 1_000);
  const read = (path: string, groups: readonly string[]) =>
    readResults(source, { path, query: queryOf(span, groups, apiKeyId), headers, dayIn });
  const groups = ['api_key_id', 'project_id', 'model'];
  const usage = await read('/v1/organization/usage/completions', [...groups, 'service_tier']);
  const embedded = await read('/v1/organization/usage/embeddings', groups);
  const costs = await read('/v1/organization/costs', ['project_id', 'line_item']);
  return { usage: [...usage, ...embedded].map(toUsage), costs: costs.map(toCost) };

  /** Subtracts from each count the parts that another meter counts, because OpenAI's `input_tokens` includes cached tokens, but meters must not overlap. */
  function toUsage({ day, result }: DatedResult): ReportedUsage {
    const cachedAudio = countIn(result, 'input_cached_audio_tokens');
    const cacheWrite = countIn(result, 'input_cache_write_tokens');
    const audioInput = countIn(result, 'input_audio_tokens');
    const audioOutput = countIn(result, 'output_audio_tokens');
    const cached = countIn(result, 'input_cached_tokens');
    return usageOf(day, result, 'project_id', [
      ['input', rest('input_tokens', result, cached, cacheWrite, audioInput)],
      ['cacheRead', rest('input_cached_tokens', result, cachedAudio)],
      ['cacheWrite', cacheWrite],
      ['audioInput', audioInput],
      ['audioCacheRead', cachedAudio],
      ['output', rest('output_tokens', result, audioOutput)],
      ['audioOutput', audioOutput],
    ]);
  }

  /** OpenAI sends amounts as numbers of dollars; `readResults` keeps their digits. */
  function toCost({ day, result }: DatedResult): ReportedCost {
    const amount = requireObject(result['amount'], 'amount');
    requireUsd(amount);
    return {
      day,
      workspaceId: textIn(result, 'project_id'),
      item: textIn(result, 'line_item'),
      amountE14: amountOf(textIn(amount, 'value') ?? '', 0),
    };
  }
}

function queryOf(span: Readonly<Record<string, string>>, groups: readonly string[], apiKeyId?: string) {
  const query = new URLSearchParams({ ...span, bucket_width: '1d', limit: String(MAX_REPORT_DAYS) });
  for (const group of groups) query.append('group_by[]', group);
  if (apiKeyId !== undefined) query.append('api_key_ids[]', apiKeyId);
  return query;
}

function usageOf(
  day: string,
  result: Json,
  workspace: 'workspace_id' | 'project_id',
  counts: readonly (readonly [Meter, bigint])[],
): ReportedUsage {
  return {
    day,
    apiKeyId: textIn(result, 'api_key_id'),
    workspaceId: textIn(result, workspace),
    model: textIn(result, 'model') ?? '',
    tier: textIn(result, 'service_tier'),
    counts: new Map(counts),
  };
}

/** Returns the count in `member` of a report's result, minus these parts of that count. */
function rest(member: string, result: Json, ...parts: readonly bigint[]): bigint {
  const left = parts.reduce((sum, part) => sum - part, countIn(result, member));
  if (left < 0n) throw new ReportFailure(`the report is not as documented: ${member} is less than its parts`);
  return left;
}

function requireUsd(amount: Json): void {
  const currency = textIn(amount, 'currency') ?? 'usd';
  if (currency.toLowerCase() !== 'usd') throw new ReportFailure(`the report is in ${currency}, not in USD`);
}
