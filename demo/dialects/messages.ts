import { inputPieces, type ModelAnswer, type Stop, sseEvent, type TokenCounts } from './answer';

const STOP_REASON: Readonly<Record<Stop, string>> = {
  end: 'end_turn',
  length: 'max_tokens',
  tool: 'tool_use',
  refusal: 'refusal',
};

/** Writes the body of an unstreamed answer of the Messages protocol. */
export function messagesBody(answer: ModelAnswer): Record<string, unknown> {
  const text = answer.texts.join('');
  return {
    ...head(answer),
    content: [
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...answer.toolCalls.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input })),
    ],
    stop_reason: STOP_REASON[answer.stop],
    stop_sequence: null,
    usage: messagesUsage(answer.usage),
  };
}

/** Writes the events of a streamed answer: one content block for the text, and one for each tool call. */
export function messagesEvents(answer: ModelAnswer): string[] {
  const blocks = [
    ...(answer.texts.length === 0 ? [] : [textBlock(answer.texts)]),
    ...answer.toolCalls.map((call) => toolBlock(call.id, call.name, call.input)),
  ];
  return [
    event('message_start', {
      message: {
        ...head(answer),
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: messagesUsage({ ...answer.usage, output: 1 }),
      },
    }),
    event('ping', {}),
    ...blocks.flatMap((block, index) => blockEvents(block, index)),
    event('message_delta', {
      delta: { stop_reason: STOP_REASON[answer.stop], stop_sequence: null },
      usage: messagesUsage(answer.usage),
    }),
    event('message_stop', {}),
  ];
}

export function messagesUsage(counts: TokenCounts): Record<string, unknown> {
  return {
    input_tokens: counts.input,
    cache_creation_input_tokens: counts.cacheWrite,
    cache_read_input_tokens: counts.cacheRead,
    output_tokens: counts.output,
  };
}

export function messagesError(type: string, message: string): Record<string, unknown> {
  return { type: 'error', error: { type, message } };
}

export function messagesErrorEvent(type: string, message: string): string {
  return sseEvent(messagesError(type, message), 'error');
}

interface Block {
  readonly start: unknown;
  readonly deltas: readonly unknown[];
}

function textBlock(texts: readonly string[]): Block {
  return { start: { type: 'text', text: '' }, deltas: texts.map((text) => ({ type: 'text_delta', text })) };
}

function toolBlock(id: string, name: string, input: Readonly<Record<string, unknown>>): Block {
  const pieces = inputPieces(input).map((piece) => ({ type: 'input_json_delta', partial_json: piece }));
  return { start: { type: 'tool_use', id, name, input: {} }, deltas: pieces };
}

function blockEvents({ start, deltas }: Block, index: number): string[] {
  return [
    event('content_block_start', { index, content_block: start }),
    ...deltas.map((delta) => event('content_block_delta', { index, delta })),
    event('content_block_stop', { index }),
  ];
}

function head({ id, model }: ModelAnswer): Record<string, unknown> {
  return { id, type: 'message', role: 'assistant', model };
}

function event(type: string, fields: Record<string, unknown>): string {
  return sseEvent({ type, ...fields }, type);
}
