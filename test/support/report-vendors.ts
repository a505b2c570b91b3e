import type { IncomingMessage, ServerResponse } from 'node:http';
import { listen, type TestServer } from './serve';

/** A vendor's counts and charges by day. A test writes them, and both vendors report them in their own forms. */
interface VendorBooks {
  usage: VendorUsage[];
  costs: VendorCost[];
}

export interface VendorUsage {
  readonly day: string;
  readonly apiKeyId: string;
  readonly model: string;
  readonly input?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly cacheWrite1h?: number;
  readonly output?: number;
  readonly webSearch?: number;
  /** Marks embeddings, which OpenAI reports separately. */
  readonly isEmbedding?: boolean;
}

interface VendorCost {
  readonly day: string;
  readonly workspaceId: string | null;
  readonly item: string;
  /** The amount as the vendor writes it: cents as text (Anthropic), or a JSON number of dollars (OpenAI). */
  readonly amount: string;
}

/** An answer instead of the next pages. */
interface Mishap {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: string;
}

export interface ReportVendor extends TestServer {
  readonly books: VendorBooks;
  /** The paths with queries, and the credential, of all requests. */
  readonly asked: { readonly url: URL; readonly headers: IncomingMessage['headers'] }[];
  readonly mishaps: Mishap[];
  /** The most buckets of one page. */
  pageSize: number;
}

export const ADMIN_KEY = 'the-admin-key-of-the-tests';

/**
 * Starts a vendor's report API as it is published: Anthropic's `usage_report/messages` and `cost_report`, or OpenAI's `usage/completions`,
 * `usage/embeddings` and `costs`. It returns days as buckets, in pages by `limit` and `page`, and refuses parameters that the documents lack.
 */
export async function startReportVendor(kind: 'anthropic' | 'openai'): Promise<ReportVendor> {
  const state = {
    books: { usage: [], costs: [] } as VendorBooks,
    asked: [] as ReportVendor['asked'],
    mishaps: [] as Mishap[],
    pageSize: 31,
  };
  const { books, asked, mishaps } = state;
  const server = await listen((request, response) => {
    const url = new URL(request.url ?? '/', 'http://vendor');
    asked.push({ url, headers: request.headers });
    const mishap = mishaps.shift();
    if (mishap !== undefined) return send(response, mishap.status, mishap.body, mishap.headers);
    if (!isAuthorised(kind, request))
      return send(response, 401, JSON.stringify({ error: { message: 'invalid admin key' } }));
    const dialect = DIALECTS[kind];
    const read = dialect.paths[url.pathname];
    if (read === undefined) return send(response, 404, JSON.stringify({ error: { message: 'not found' } }));
    const days = dialect.daysOf(url.searchParams);
    const limit = Math.min(Number(url.searchParams.get('limit') ?? 7), 31, state.pageSize);
    const first = Number(url.searchParams.get('page')?.replace('page_', '') ?? 0);
    const shown = days.slice(first, first + limit);
    const hasMore = first + limit < days.length;
    const keys = url.searchParams.getAll('api_key_ids[]');
    const buckets = shown.map((day) => dialect.bucket(day, read(books, day, keys)));
    const next = hasMore ? `"page_${first + limit}"` : 'null';
    send(response, 200, `{"object":"page","data":[${buckets.join()}],"has_more":${hasMore},"next_page":${next}}`);
  });
  return Object.assign(state, server);
}

function send(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}

function isAuthorised(kind: 'anthropic' | 'openai', { headers }: IncomingMessage): boolean {
  if (kind === 'openai') return headers.authorization === `Bearer ${ADMIN_KEY}`;
  return headers['x-api-key'] === ADMIN_KEY && headers['anthropic-version'] === '2023-06-01';
}

type Results = (books: VendorBooks, day: string, keys: readonly string[]) => readonly string[];

interface Dialect {
  readonly paths: Readonly<Record<string, Results>>;
  daysOf(query: URLSearchParams): readonly string[];
  bucket(day: string, results: readonly string[]): string;
}

const DAY_MS = 86_400_000;

function daysBetween(startMs: number, endMs: number): readonly string[] {
  const days: string[] = [];
  for (let ms = startMs; ms + DAY_MS <= endMs; ms += DAY_MS) days.push(new Date(ms).toISOString().slice(0, 10));
  return days;
}

function usageOf({ usage }: VendorBooks, day: string, keys: readonly string[], ofEmbeddings = false) {
  const isOf = ({ isEmbedding = false }: VendorUsage) => isEmbedding === ofEmbeddings;
  return usage.filter((each) => each.day === day && isOf(each) && (keys.length === 0 || keys.includes(each.apiKeyId)));
}

const DIALECTS: Readonly<Record<'anthropic' | 'openai', Dialect>> = {
  anthropic: {
    paths: {
      '/v1/organizations/usage_report/messages': (books, day, keys) =>
        usageOf(books, day, keys).map((each) =>
          JSON.stringify({
            uncached_input_tokens: each.input ?? 0,
            cache_creation: {
              ephemeral_1h_input_tokens: each.cacheWrite1h ?? 0,
              ephemeral_5m_input_tokens: each.cacheWrite ?? 0,
            },
            cache_read_input_tokens: each.cacheRead ?? 0,
            output_tokens: each.output ?? 0,
            server_tool_use: { web_search_requests: each.webSearch ?? 0 },
            api_key_id: each.apiKeyId,
            workspace_id: null,
            model: each.model,
            service_tier: 'standard',
            context_window: null,
            inference_geo: null,
          }),
        ),
      '/v1/organizations/cost_report': ({ costs }, day) =>
        costs
          .filter((each) => each.day === day)
          .map(({ workspaceId, item, amount }) =>
            JSON.stringify({
              currency: 'USD',
              amount,
              workspace_id: workspaceId,
              description: item,
              cost_type: 'tokens',
              context_window: '0-200k',
              model: null,
              service_tier: 'standard',
              token_type: null,
            }),
          ),
    },
    daysOf: (query) =>
      daysBetween(Date.parse(query.get('starting_at') ?? ''), Date.parse(query.get('ending_at') ?? '')),
    bucket: (day, results) => {
      const end = new Date(Date.parse(day) + DAY_MS).toISOString();
      return `{"starting_at":"${day}T00:00:00Z","ending_at":"${end}","results":[${results.join()}]}`;
    },
  },
  openai: {
    paths: {
      '/v1/organization/usage/completions': (books, day, keys) =>
        usageOf(books, day, keys, false).map((each) => {
          const { input = 0, cacheRead = 0, cacheWrite = 0, output = 0 } = each;
          return JSON.stringify({
            object: 'organization.usage.completions.result',
            input_tokens: input + cacheRead + cacheWrite,
            output_tokens: output,
            input_cached_tokens: cacheRead,
            input_cache_write_tokens: cacheWrite,
            input_audio_tokens: 0,
            output_audio_tokens: 0,
            num_model_requests: 1,
            project_id: null,
            user_id: null,
            api_key_id: each.apiKeyId,
            model: each.model,
            batch: null,
            service_tier: 'default',
          });
        }),
      '/v1/organization/usage/embeddings': (books, day, keys) =>
        usageOf(books, day, keys, true).map(({ input = 0, apiKeyId, model }) =>
          JSON.stringify({
            object: 'organization.usage.embeddings.result',
            input_tokens: input,
            num_model_requests: 1,
            project_id: null,
            user_id: null,
            api_key_id: apiKeyId,
            model,
          }),
        ),
      '/v1/organization/costs': ({ costs }, day) =>
        costs
          .filter((each) => each.day === day)
          .map(
            ({ workspaceId, item, amount }) =>
              `{"object":"organization.costs.result","amount":{"value":${amount},"currency":"usd"},` +
              `"line_item":${JSON.stringify(item)},"project_id":${JSON.stringify(workspaceId)},"quantity":null}`,
          ),
    },
    daysOf: (query) => daysBetween(Number(query.get('start_time')) * 1_000, Number(query.get('end_time')) * 1_000),
    bucket: (day, results) => {
      const start = Date.parse(day) / 1_000;
      return `{"object":"bucket","start_time":${start},"end_time":${start + 86_400},"results":[${results.join()}]}`;
    },
  },
};
