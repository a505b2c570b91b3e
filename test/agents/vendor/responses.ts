import type { Prompt } from './counting';
import { type Json, objectsOf } from './json';
import { type Counts, type Part, piecesOf, type Turn, type Written } from './turn';

/** Reads a Responses request according to the types of `openai`. */
export function readResponses(body: Json): Prompt {
  const input = typeof body['input'] === 'string' ? [body['input']] : objectsOf(body['input']);
  const pieces = [{ instructions: body['instructions'], tools: body['tools'] }, ...input];
  return { pieces, kept: pieces.length, writes: undefined };
}

export function writeResponses(turn: Turn, counts: Counts, model: string, id: string, request: Json): Written {
  const output = turn.parts.flatMap((part, index) => itemsOf(part, `${id}_${index}`, request));
  const head = { ...responseHead(request), id: `resp_${id}`, model };
  const begun = { ...head, status: 'in_progress', output: [], usage: null };
  const body = { ...head, status: 'completed', completed_at: 1_790_000_001, output, usage: usageOf(counts) };
  const used =
    counts.webSearches === 0 ? body : { ...body, tool_usage: { web_search: { num_requests: counts.webSearches } } };
  const events: readonly Json[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...output.flatMap((item, index) => itemEvents(item, index)),
    { type: 'response.completed', response: used },
  ];
  return { body: used, events: events.map((event, index) => sse({ ...event, sequence_number: index })) };
}

function responseHead(request: Json): Json {
  return {
    object: 'response',
    created_at: 1_790_000_000,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request['instructions'] ?? null,
    max_output_tokens: request['max_output_tokens'] ?? null,
    metadata: {},
    parallel_tool_calls: request['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    prompt_cache_key: request['prompt_cache_key'] ?? null,
    reasoning: { effort: null, summary: null },
    service_tier: 'default',
    store: request['store'] ?? true,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: request['tool_choice'] ?? 'auto',
    tools: request['tools'] ?? [],
    top_p: 1,
    truncation: 'disabled',
  };
}

function itemsOf(part: Part, id: string, request: Json): readonly Json[] {
  if (part.kind === 'text') return [messageItem(part.text, id)];
  if (part.kind === 'reasoning') {
    const summary = [{ type: 'summary_text', text: part.text }];
    return [{ type: 'reasoning', id: `rs_${id}`, summary, encrypted_content: `sealed_${id}` }];
  }
  if (part.kind === 'call') {
    const call = { call_id: `call_${id}`, name: part.name, arguments: JSON.stringify(part.input) };
    return [{ type: 'function_call', id: `fc_${id}`, status: 'completed', ...call }];
  }
  if (part.kind === 'webSearch') {
    const action = {
      type: 'search',
      query: part.query,
      queries: [part.query],
      sources: [{ type: 'url', url: part.url }],
    };
    return [{ type: 'web_search_call', id: `ws_${id}`, status: 'completed', action }];
  }
  const search = { type: 'tool_search_call', id: `tsc_${id}`, status: 'completed', arguments: { query: part.query } };
  const { found } = part;
  if (found === 'by client') return [{ ...search, call_id: `call_${id}`, execution: 'client' }];
  const atVendor = { call_id: null, execution: 'server', status: 'completed' };
  const tools = objectsOf(request['tools']).filter(({ name }) => found.includes(String(name)));
  return [
    { ...search, ...atVendor },
    { type: 'tool_search_output', id: `tso_${id}`, ...atVendor, tools },
  ];
}

function messageItem(text: string, id: string): Json {
  return { type: 'message', id: `msg_${id}`, status: 'completed', role: 'assistant', content: [textPart(text)] };
}

function textPart(text: string): Json {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

/** Writes the events of an item: it opens as empty as its kind allows, deltas fill it, and the last event repeats it whole. */
function itemEvents(item: Json, index: number): readonly Json[] {
  const at = { item_id: item['id'], output_index: index };
  const { opened, between } = fillingOf(item, at);
  return [
    { type: 'response.output_item.added', output_index: index, item: { ...item, ...opened, status: 'in_progress' } },
    ...between,
    { type: 'response.output_item.done', output_index: index, item },
  ];
}

function fillingOf(item: Json, at: Json): { readonly opened: Json; readonly between: readonly Json[] } {
  switch (item['type']) {
    case 'message':
      return { opened: { content: [] }, between: textEvents(item, { ...at, content_index: 0 }) };
    case 'function_call':
      return { opened: { arguments: '' }, between: argumentEvents(item, at) };
    case 'reasoning':
      return { opened: { summary: [] }, between: summaryEvents(item, { ...at, summary_index: 0 }) };
    case 'web_search_call': {
      const events = ['in_progress', 'searching', 'completed'];
      return { opened: {}, between: events.map((each) => ({ type: `response.web_search_call.${each}`, ...at })) };
    }
    default:
      return { opened: {}, between: [] };
  }
}

function textEvents(item: Json, at: Json): readonly Json[] {
  const [part = {}] = objectsOf(item['content']);
  return [
    { type: 'response.content_part.added', ...at, part: textPart('') },
    ...piecesOf(part['text']).map((delta) => ({ type: 'response.output_text.delta', ...at, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...at, text: part['text'], logprobs: [] },
    { type: 'response.content_part.done', ...at, part },
  ];
}

function argumentEvents(item: Json, at: Json): readonly Json[] {
  const written = item['arguments'];
  return [
    ...piecesOf(written).map((delta) => ({ type: 'response.function_call_arguments.delta', ...at, delta })),
    { type: 'response.function_call_arguments.done', ...at, arguments: written },
  ];
}

function summaryEvents(item: Json, at: Json): readonly Json[] {
  const [part = {}] = objectsOf(item['summary']);
  return [
    { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
    { type: 'response.reasoning_summary_text.delta', ...at, delta: part['text'] },
    { type: 'response.reasoning_summary_text.done', ...at, text: part['text'] },
    { type: 'response.reasoning_summary_part.done', ...at, part },
  ];
}

/** Writes the usage. The input's count includes cached tokens. */
function usageOf(counts: Counts): Json {
  const input = counts.input + counts.cacheRead;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: counts.cacheRead, cache_write_tokens: 0 },
    output_tokens: counts.output,
    output_tokens_details: { reasoning_tokens: counts.reasoning },
    total_tokens: input + counts.output,
  };
}

function sse(event: Json): string {
  return `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`;
}
