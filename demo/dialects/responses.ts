import { inputPieces, type ModelAnswer, sseEvent, type TokenCounts, type ToolCall } from './answer';

/** Writes the body of an unstreamed answer of the Responses protocol. */
export function responsesBody(answer: ModelAnswer): Record<string, unknown> {
  return response(answer, statusOf(answer), itemsOf(answer), responsesUsage(answer.usage));
}

/** Writes the events of a streamed answer: each item begins, arrives in pieces and is repeated whole, and so is the response. */
export function responsesEvents(answer: ModelAnswer): string[] {
  const status = statusOf(answer);
  const begun = response(answer, 'in_progress', [], null);
  const items = itemsOf(answer);
  const whole = response(answer, status, items, responsesUsage(answer.usage));
  const events: [type: string, fields: Record<string, unknown>][] = [
    ['response.created', { response: begun }],
    ['response.in_progress', { response: begun }],
    ...items.flatMap((item, index) => itemEvents(answer, item, index)),
    [`response.${status}`, { response: whole }],
  ];
  return events.map(([type, fields], at) => sseEvent({ type, sequence_number: at, ...fields }, type));
}

/** Writes the counts. In this protocol the input's count includes tokens read from or written to a cache. */
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

/** Writes the last event of a stream that fails. */
export function responsesFailedEvent(answer: ModelAnswer, code: string, message: string, at: number): string {
  const failed = { ...response(answer, 'failed', [], null), error: { code, message } };
  return sseEvent({ type: 'response.failed', sequence_number: at, response: failed }, 'response.failed');
}

type Item = Readonly<Record<string, unknown>>;

function statusOf({ stop }: ModelAnswer): 'completed' | 'incomplete' {
  return stop === 'length' || stop === 'refusal' ? 'incomplete' : 'completed';
}

function itemsOf(answer: ModelAnswer): Item[] {
  return [...(answer.texts.length === 0 ? [] : [messageItem(answer)]), ...answer.toolCalls.map(callItem)];
}

function messageItem({ id, texts }: ModelAnswer): Item {
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [textPart(texts.join(''))],
  };
}

function callItem({ id, name, input }: ToolCall): Item {
  const call = { call_id: id, name, arguments: JSON.stringify(input) };
  return { id: `fc_${id}`, type: 'function_call', status: 'completed', ...call };
}

function textPart(text: string): Item {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function itemEvents(answer: ModelAnswer, item: Item, index: number): [string, Record<string, unknown>][] {
  const isMessage = item['type'] === 'message';
  const at = { item_id: item['id'], output_index: index };
  const part = { ...at, content_index: 0 };
  const text = answer.texts.join('');
  const pieces: [string, Record<string, unknown>][] = isMessage
    ? [
        ['response.content_part.added', { ...part, part: textPart('') }],
        ...answer.texts.map((delta): [string, Record<string, unknown>] => [
          'response.output_text.delta',
          { ...part, delta, logprobs: [] },
        ]),
        ['response.output_text.done', { ...part, text, logprobs: [] }],
        ['response.content_part.done', { ...part, part: textPart(text) }],
      ]
    : [
        ...inputPieces(parsed(item['arguments'])).map((delta): [string, Record<string, unknown>] => [
          'response.function_call_arguments.delta',
          { ...at, delta },
        ]),
        ['response.function_call_arguments.done', { ...at, name: item['name'], arguments: item['arguments'] }],
      ];
  const begun = { ...item, status: 'in_progress', ...(isMessage ? { content: [] } : { arguments: '' }) };
  return [
    ['response.output_item.added', { output_index: index, item: begun }],
    ...pieces,
    ['response.output_item.done', { output_index: index, item }],
  ];
}

function parsed(text: unknown): Readonly<Record<string, unknown>> {
  return JSON.parse(String(text)) as Readonly<Record<string, unknown>>;
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
