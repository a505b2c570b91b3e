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
 * Reads OpenAI's usage and costs APIs: `GET /v1/organization/usage/completions`, `…/usage/embeddings` and `GET
 * /v1/organization/costs`, as published in the API reference and in the types of the npm package `openai`.
 */
export async function readOpenAiReport(source: ReportSource, days: Days): Promise<Report> {
  const groups = ['api_key_id', 'project_id', 'model'];
  const usage = await read(source, '/v1/organization/usage/completions', days, [...groups, 'service_tier']);
  const embedded = await read(source, '/v1/organization/usage/embeddings', days, groups);
  const costs = await read(source, '/v1/organization/costs', days, ['project_id', 'line_item']);
  return { usage: [...usage, ...embedded].map(toUsage), costs: costs.map(toCost) };
}

async function read(
  source: ReportSource,
  path: string,
  days: Days,
  groups: readonly string[],
): Promise<readonly DatedResult[]> {
  const { start, end } = boundsOf(days);
  const query = new URLSearchParams({
    start_time: String(start.getTime() / 1_000),
    end_time: String(end.getTime() / 1_000),
    bucket_width: '1d',
    limit: String(MOST_DAYS),
  });
  for (const group of groups) query.append('group_by[]', group);
  const { apiKeyId, credential } = source.reporting;
  if (apiKeyId !== undefined) query.append('api_key_ids[]', apiKeyId);
  const headers = { authorization: `Bearer ${credential}` };
  return readResults(source, { path, query, headers, dayIn });
}

function dayIn(bucket: Json): string {
  return dayOf(Number(countIn(bucket, 'start_time')) * 1_000);
}

/** Reads one usage result. The report's sums contain their parts, like the usage of an answer, but meters must not overlap. */
function toUsage({ day, result }: DatedResult): ReportedUsage {
  const cached = countIn(result, 'input_cached_tokens');
  const cachedAudio = countIn(result, 'input_cached_audio_tokens');
  const cacheWrite = countIn(result, 'input_cache_write_tokens');
  const audioInput = countIn(result, 'input_audio_tokens');
  const audioOutput = countIn(result, 'output_audio_tokens');
  const counts: [Meter, bigint][] = [
    ['input', rest('input_tokens', result, cached, cacheWrite, audioInput)],
    ['cacheRead', rest('input_cached_tokens', result, cachedAudio)],
    ['cacheWrite', cacheWrite],
    ['audioInput', audioInput],
    ['audioCacheRead', cachedAudio],
    ['output', rest('output_tokens', result, audioOutput)],
    ['audioOutput', audioOutput],
  ];
  return {
    day,
    apiKeyId: textIn(result, 'api_key_id'),
    workspaceId: textIn(result, 'project_id'),
    model: textIn(result, 'model') ?? '',
    tier: textIn(result, 'service_tier'),
    counts: new Map(counts),
  };
}

function rest(member: string, result: Json, ...parts: readonly bigint[]): bigint {
  const left = parts.reduce((sum, part) => sum - part, countIn(result, member));
  if (left < 0n) throw new ReportFailure(`the report is not as documented: ${member} is less than its parts`);
  return left;
}

/** Reads one cost. OpenAI sends amounts as numbers of dollars; `readPages` keeps their digits. */
function toCost({ day, result }: DatedResult): ReportedCost {
  const amount = asObject(result['amount'], 'amount');
  const currency = textIn(amount, 'currency') ?? 'usd';
  if (currency.toLowerCase() !== 'usd') throw new ReportFailure(`the report is in ${currency}, not in USD`);
  return {
    day,
    workspaceId: textIn(result, 'project_id'),
    item: textIn(result, 'line_item'),
    amountE14: amountOf(textIn(amount, 'value') ?? '', 0),
  };
}
