import type { Prompt } from './counting';
import { type Json, objectsOf } from './json';
import { type Counts, type Part, piecesOf, type RefusalBody, type RefusalKind, type Turn, type Written } from './turn';

/** Reads a Messages request according to the types of `@anthropic-ai/sdk`. */
export function readMessages(body: Json): Prompt {
  const marked = [{ tools: body['tools'], system: body['system'] }, ...objectsOf(body['messages'])];
  const texts = marked.map((piece) => JSON.stringify(piece));
  const pieces = texts.map(withoutMarks);
  const marksAll = body['cache_control'] !== undefined;
  const last = texts.findLastIndex((text) => marksAll || text.includes(MARK));
  if (last === -1) return { pieces, kept: pieces.length, writes: undefined };
  return { pieces, kept: last + 1, writes: texts.some((text) => text.includes('"ttl":"1h"')) ? '1h' : '5m' };
}

const MARK = '"cache_control":';

/** Removes cache marks, because clients move them to the newest message without changing the prompt. */
function withoutMarks(text: string): unknown {
  return JSON.parse(text, (key, value: unknown) => (key === 'cache_control' ? undefined : value));
}

export function writeMessages(turn: Turn, counts: Counts, model: string, id: string): Written {
  const content = turn.parts.flatMap((part, index) => blocksOf(part, `${id}_${index}`));
  const calls = turn.parts.some((part) => part.kind === 'call');
  const head = { id: `msg_${id}`, type: 'message', role: 'assistant', model };
  const stop = { stop_reason: calls ? 'tool_use' : 'end_turn', stop_sequence: null };
  const usage = usageOf(counts);
  return {
    body: { ...head, content, ...stop, usage },
    events: [
      event('message_start', {
        message: {
          ...head,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { ...usage, output_tokens: 1 },
        },
      }),
      event('ping', {}),
      ...content.flatMap((block, index) => blockEvents(block, index)),
      event('message_delta', { delta: stop, usage }),
      event('message_stop', {}),
    ],
  };
}

const REFUSALS: Readonly<Record<RefusalKind, readonly [number, string, string]>> = {
  invalid: [400, 'invalid_request_error', 'tools.0: the vendor does not take this tool'],
  tooLong: [400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'],
  rateLimited: [429, 'rate_limit_error', 'This request would exceed your rate limit.'],
  broken: [500, 'api_error', 'Internal server error'],
};

export function refuseMessages(kind: RefusalKind): RefusalBody {
  const [status, type, message] = REFUSALS[kind];
  return {
    status,
    headers: kind === 'rateLimited' ? { 'retry-after': '1' } : {},
    body: { type: 'error', error: { type, message }, request_id: 'req_vendor' },
  };
}

function usageOf(counts: Counts): Json {
  return {
    input_tokens: counts.input,
    cache_creation_input_tokens: counts.cacheWrite + counts.cacheWrite1h,
    cache_read_input_tokens: counts.cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: counts.cacheWrite,
      ephemeral_1h_input_tokens: counts.cacheWrite1h,
    },
    output_tokens: counts.output,
    server_tool_use:
      counts.webSearches === 0 ? null : { web_search_requests: counts.webSearches, web_fetch_requests: 0 },
    service_tier: 'standard',
    speed: 'standard',
    inference_geo: null,
  };
}

function blocksOf(part: Part, id: string): readonly Json[] {
  if (part.kind === 'text') return [{ type: 'text', text: part.text, citations: null }];
  if (part.kind === 'reasoning') return [{ type: 'thinking', thinking: part.text, signature: `signature_${id}` }];
  if (part.kind === 'call') return [{ type: 'tool_use', id: `toolu_${id}`, name: part.name, input: part.input }];
  const use = { type: 'server_tool_use', id: `srvtoolu_${id}`, input: { query: part.query } };
  const result = { tool_use_id: `srvtoolu_${id}`, caller: { type: 'direct' } };
  if (part.kind === 'webSearch') {
    const found = { title: part.query, url: part.url, encrypted_content: 'c2VhbGVk', page_age: null };
    return [
      { ...use, name: 'web_search' },
      { ...result, type: 'web_search_tool_result', content: [{ type: 'web_search_result', ...found }] },
    ];
  }
  if (part.found === 'by client') throw new Error('in this protocol a tool of the client searches');
  const references = part.found.map((name) => ({ type: 'tool_reference', tool_name: name }));
  return [
    { ...use, name: 'tool_search_tool_bm25' },
    {
      ...result,
      type: 'tool_search_tool_result',
      content: { type: 'tool_search_tool_search_result', tool_references: references },
    },
  ];
}

/** Writes the events of a block: it opens empty and deltas fill it, but results of the vendor's tools arrive whole. */
function blockEvents(block: Json, index: number): readonly string[] {
  const { start, deltas } = deltasOf(block);
  return [
    event('content_block_start', { index, content_block: start }),
    ...deltas.map((delta) => event('content_block_delta', { index, delta })),
    event('content_block_stop', { index }),
  ];
}

function deltasOf(block: Json): { readonly start: Json; readonly deltas: readonly Json[] } {
  if (block['type'] === 'text') {
    const deltas = piecesOf(block['text']).map((text) => ({ type: 'text_delta', text }));
    return { start: { ...block, text: '' }, deltas };
  }
  if (block['type'] === 'thinking') {
    const thinking = { type: 'thinking_delta', thinking: block['thinking'] };
    const signature = { type: 'signature_delta', signature: block['signature'] };
    return { start: { type: 'thinking', thinking: '', signature: '' }, deltas: [thinking, signature] };
  }
  if (block['input'] !== undefined) {
    const pieces = piecesOf(block['input']).map((text) => ({ type: 'input_json_delta', partial_json: text }));
    return { start: { ...block, input: {} }, deltas: pieces };
  }
  return { start: block, deltas: [] };
}

function event(type: string, fields: Json): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
