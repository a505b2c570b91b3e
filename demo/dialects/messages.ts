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
    ...blocksOf(answer).flatMap(({ start, deltas }, index) => [
      event('content_block_start', { index, content_block: start }),
      ...deltas.map((delta) => event('content_block_delta', { index, delta })),
      event('content_block_stop', { index }),
    ]),
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

interface Block {
  readonly start: unknown;
  readonly deltas: readonly unknown[];
}

function blocksOf({ texts, toolCalls }: ModelAnswer): Block[] {
  const text = { start: { type: 'text', text: '' }, deltas: texts.map((each) => ({ type: 'text_delta', text: each })) };
  const tools = toolCalls.map(({ id, name, input }) => ({
    start: { type: 'tool_use', id, name, input: {} },
    deltas: inputPieces(input).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  }));
  return texts.length === 0 ? tools : [text, ...tools];
}

function head({ id, model }: ModelAnswer): Record<string, unknown> {
  return { id, type: 'message', role: 'assistant', model };
}

function event(type: string, fields: Record<string, unknown>): string {
  return sseEvent({ type, ...fields }, type);
}
