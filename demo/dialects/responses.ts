import { jsonPiecesOf, type ModelAnswer, sseEvent, type TokenCounts } from './answer';

/** Writes the body of an unstreamed answer of the Responses protocol. */
export function responsesBody(answer: ModelAnswer): Record<string, unknown> {
  return response(answer, statusOf(answer), itemsOf(answer), responsesUsage(answer.usage));
}

/** Writes the events of a streamed answer. Each item begins, arrives in pieces and is then sent whole; the last event has the whole response. */
export function responsesEvents(answer: ModelAnswer): string[] {
  const status = statusOf(answer);
  const begun = response(answer, 'in_progress', [], null);
  const items = itemsOf(answer);
  const whole = response(answer, status, items, responsesUsage(answer.usage));
  const events: readonly Event[] = [
    ['response.created', { response: begun }],
    ['response.in_progress', { response: begun }],
    ...items.flatMap((item, index) => itemEvents(answer, item, index)),
    [`response.${status}`, { response: whole }],
  ];
  return events.map(([type, fields], at) => sseEvent({ type, sequence_number: at, ...fields }, type));
}

/** Formats the token counts for the Responses protocol, whose input count includes tokens read from or written to a cache. */
export function responsesUsage({ input, output, cacheRead, cacheWrite }: TokenCounts): Record<string, unknown> {
  const all = input + cacheRead + cacheWrite;
  return {
    input_tokens: all,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: all + output,
  };
}

type Item = Readonly<Record<string, unknown>>;

function statusOf({ stop }: ModelAnswer): 'completed' | 'incomplete' {
  return stop === 'length' || stop === 'refusal' ? 'incomplete' : 'completed';
}

function itemsOf({ id, texts, toolCalls }: ModelAnswer): Item[] {
  const content = [textPart(texts.join(''))];
  const message = { id: `msg_${id}`, type: 'message', role: 'assistant', status: 'completed', content };
  const calls = toolCalls.map((call) => ({
    id: `fc_${call.id}`,
    type: 'function_call',
    status: 'completed',
    call_id: call.id,
    name: call.name,
    arguments: JSON.stringify(call.input),
  }));
  return texts.length === 0 ? calls : [message, ...calls];
}

function textPart(text: string): Item {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

type Event = readonly [type: string, fields: Record<string, unknown>];

function itemEvents({ texts }: ModelAnswer, item: Item, index: number): readonly Event[] {
  const at = { item_id: item['id'], output_index: index };
  const isMessage = item['type'] === 'message';
  const begun = { ...item, status: 'in_progress', ...(isMessage ? { content: [] } : { arguments: '' }) };
  return [
    ['response.output_item.added', { output_index: index, item: begun }],
    ...(isMessage ? textEvents(texts, { ...at, content_index: 0 }) : callEvents(item, at)),
    ['response.output_item.done', { output_index: index, item }],
  ];
}

function textEvents(texts: readonly string[], at: Item): readonly Event[] {
  const text = texts.join('');
  return [
    ['response.content_part.added', { ...at, part: textPart('') }],
    ...texts.map((delta): Event => ['response.output_text.delta', { ...at, delta, logprobs: [] }]),
    ['response.output_text.done', { ...at, text, logprobs: [] }],
    ['response.content_part.done', { ...at, part: textPart(text) }],
  ];
}

function callEvents({ name, arguments: text }: Item, at: Item): readonly Event[] {
  return [
    ...jsonPiecesOf(String(text)).map((delta): Event => ['response.function_call_arguments.delta', { ...at, delta }]),
    ['response.function_call_arguments.done', { ...at, name, arguments: text }],
  ];
}

function response(
  { id, model, createdAt, stop }: ModelAnswer,
  status: string,
  output: readonly Item[],
  usage: unknown,
) {
  const reason = stop === 'refusal' ? 'content_filter' : 'max_output_tokens';
  return {
    id,
    object: 'response',
    created_at: createdAt,
    status,
    background: false,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason } : null,
    instructions: null,
    max_output_tokens: null,
    metadata: {},
    model,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    service_tier: 'default',
    store: false,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage,
    user: null,
  };
}
