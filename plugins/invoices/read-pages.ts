import { setTimeout as sleep } from 'node:timers/promises';
import type { Reporting } from '../../core/catalog/catalog';
import { readAll } from '../../core/wire/chunk-reader';
import { classifyDialFailure, type Destination, type Egress } from '../../core/wire/egress';
import { decodedChunks, Exchange } from '../../core/wire/exchange';
import { parseE14, ReportFailure } from './report';

/** How to call a vendor's admin API. */
export interface ReportSource {
  readonly egress: Egress;
  /** The address of the vendor's report. The member `name` is the name of the upstream. */
  readonly destination: Destination;
  readonly reporting: Reporting & { readonly credential: string };
  /** Aborts the pauses between retries. */
  readonly signal?: AbortSignal | undefined;
}

export type Json = Readonly<Record<string, unknown>>;

const PATIENCE_MS = 60_000;
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
const MAX_PAGES = 1_000;
const MAX_TRIES = 4;
const FIRST_PAUSE_MS = 1_000;
/** The longest pause before a retry. If the vendor asks for a longer one, the read fails, and the caller may retry it later. */
const MAX_PAUSE_MS = 30_000;

/** The HTTP request for a vendor's report, and how to read the days of its result. */
interface Wanted {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  /** Returns the UTC day that one bucket of a vendor's report covers. */
  dayIn(bucket: Json): string;
}

/** One result of a vendor's report, with the UTC day of the bucket that contains it. */
export interface DatedResult {
  readonly day: string;
  readonly result: Json;
}

/**
 * Reads all pages of a report. Both vendors answer in one form: `data` lists the buckets of days with their `results`. While
 * `has_more` is true, the next request sends `next_page` as `page`.
 * @throws ReportFailure
 */
export async function readResults(
  source: ReportSource,
  { path, query, headers, dayIn }: Wanted,
): Promise<readonly DatedResult[]> {
  const results: DatedResult[] = [];
  const seen = new Set<string>();
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page = await readPage(source, `${path}?${query}`, headers);
    for (const bucket of listIn(page, 'data')) {
      const day = dayIn(bucket);
      for (const result of listIn(bucket, 'results')) results.push({ day, result });
    }
    if (page['has_more'] !== true) return results;
    const next = page['next_page'];
    if (typeof next !== 'string' || next === '' || seen.has(next))
      throw new ReportFailure('the report has a next page but does not name it');
    seen.add(next);
    query.set('page', next);
  }
  throw new ReportFailure(`the report has more than ${MAX_PAGES} pages`);
}

async function readPage(source: ReportSource, path: string, headers: Readonly<Record<string, string>>): Promise<Json> {
  for (let tries = 1; ; tries += 1) {
    const answer = await ask(source, path, headers);
    if ('page' in answer) return answer.page;
    if (answer.retryAfterMs === undefined || tries === MAX_TRIES) throw new ReportFailure(answer.problem);
    const pauseMs = Math.max(answer.retryAfterMs, FIRST_PAUSE_MS * 2 ** (tries - 1));
    if (pauseMs > MAX_PAUSE_MS)
      throw new ReportFailure(`${answer.problem}; ask again in ${Math.ceil(pauseMs / 1_000)} s`);
    await sleep(pauseMs, undefined, { signal: source.signal });
  }
}

type PageResult =
  | { readonly page: Json }
  /** `retryAfterMs`: the pause before a retry; undefined if a retry cannot help. */
  | { readonly problem: string; readonly retryAfterMs: number | undefined };

async function ask(
  { egress, destination, reporting }: ReportSource,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<PageResult> {
  const base = destination.url.pathname.replace(/\/$/, '');
  const exchange = new Exchange(egress.pool(destination), {
    method: 'GET',
    path: base + path,
    headers: { accept: 'application/json', 'accept-encoding': 'identity', ...headers },
  });
  const patience = setTimeout(() => exchange.cancel(), PATIENCE_MS);
  try {
    const head = await exchange.head;
    const text = (await readAll(decodedChunks(exchange, head), MAX_PAGE_BYTES)).toString('utf8');
    if (head.status === 200) return { page: parsePage(text) };
    const shown = text
      .replaceAll(reporting.credential, '[credential]')
      .replaceAll(/\p{Cc}/gu, ' ')
      .slice(0, 300);
    const problem = `it answered ${head.status}: ${shown}`;
    return { problem, retryAfterMs: isPassing(head.status) ? retryAfterMs(head.headers['retry-after']) : undefined };
  } catch (error) {
    if (error instanceof ReportFailure) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    return { problem: `${classifyDialFailure(error)}: ${reason}`, retryAfterMs: 0 };
  } finally {
    clearTimeout(patience);
    exchange.cancel();
  }
}

function isPassing(status: number): boolean {
  return status === 429 || status >= 500;
}

function retryAfterMs(header: string | string[] | undefined): number {
  const text = String(header ?? '');
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? 0 : Math.max(0, at - Date.now());
}

/**
 * Finds amounts that are JSON numbers, because a JSON parser would turn them into floats. Quotes within JSON strings are escaped, so the
 * pattern matches only members, never the content of a string.
 */
const AMOUNT = /("value"\s*:\s*)(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;

function parsePage(text: string): Json {
  try {
    return requireObject(JSON.parse(text.replace(AMOUNT, '$1"$2"')), 'the page');
  } catch (error) {
    if (error instanceof ReportFailure) throw error;
    throw new ReportFailure('the report is not JSON');
  }
}

/** Returns a JSON value as an object. @throws ReportFailure if the value is not an object */
export function requireObject(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ReportFailure(`the report is not as documented: ${what} is no object`);
  return value as Json;
}

/** Returns the objects in a member that must be a list. @throws ReportFailure if it is not a list of objects */
function listIn(object: Json, member: string): readonly Json[] {
  const list = object[member];
  if (!Array.isArray(list)) throw new ReportFailure(`the report is not as documented: ${member} is no list`);
  return list.map((each) => requireObject(each, `an item of ${member}`));
}

/** Returns a count; 0 where the member is absent or null. @throws ReportFailure */
export function countIn(object: Json, member: string): bigint {
  const value = object[member] ?? 0;
  if (!Number.isSafeInteger(value) || (value as number) < 0)
    throw new ReportFailure(`the report is not as documented: ${member} is ${JSON.stringify(value)}, no count`);
  return BigInt(value as number);
}

/** Returns a text; null where the member is absent or null. @throws ReportFailure */
export function textIn(object: Json, member: string): string | null {
  const value = object[member] ?? null;
  if (value !== null && typeof value !== 'string')
    throw new ReportFailure(`the report is not as documented: ${member} is no text`);
  return value;
}

/** Reads an amount of dollars (`unitDecimals` 0) or cents (2) into 1e-14 USD. @throws ReportFailure */
export function amountOf(text: string, unitDecimals: 0 | 2): bigint {
  try {
    return parseE14(text, unitDecimals);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ReportFailure(`the report is not as documented: amount: ${error.message}`);
  }
}
