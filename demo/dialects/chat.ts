import { inputPieces, type ModelAnswer, type Stop, sseEvent, type TokenCounts, type ToolCall } from './answer';

const FINISH_REASON: Readonly<Record<Stop, string>> = {
  end: 'stop',
  length: 'length',
  tool: 'tool_calls',
  refusal: 'content_filter',
};

/** Writes the body of an unstreamed answer of the Chat protocol. */
export function chatBody(answer: ModelAnswer): Record<string, unknown> {
  const text = answer.texts.join('');
  const toolCalls = answer.toolCalls.map((call) => ({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.input) },
  }));
  return {
    ...head(answer, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && toolCalls.length > 0 ? null : text,
          refusal: null,
          ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
        },
        logprobs: null,
        finish_reason: FINISH_REASON[answer.stop],
      },
    ],
    usage: chatUsage(answer.usage),
  };
}

/** Writes the chunks of a streamed answer. With `withUsage` (`stream_options.include_usage`), the last chunk has the token counts. */
export function chatEvents(answer: ModelAnswer, withUsage: boolean): string[] {
  const chunk = (choices: readonly unknown[], usage: unknown = null): string =>
    sseEvent({ ...head(answer, 'chat.completion.chunk'), choices, ...(withUsage ? { usage } : {}) });
  const delta = (fields: unknown, finishReason: string | null = null): string =>
    chunk([{ index: 0, delta: fields, logprobs: null, finish_reason: finishReason }]);
  return [
    delta({ role: 'assistant', content: answer.texts.length === 0 ? null : '', refusal: null }),
    ...answer.texts.map((content) => delta({ content })),
    ...answer.toolCalls.flatMap((call, index) => toolDeltas(call, index).map((fields) => delta(fields))),
    delta({}, FINISH_REASON[answer.stop]),
    ...(withUsage ? [chunk([], chatUsage(answer.usage))] : []),
    sseEvent('[DONE]'),
  ];
}

/** Formats the token counts for the Chat protocol, whose prompt count includes tokens read from a cache. */
export function chatUsage({ input, output, cacheRead, cacheWrite }: TokenCounts): Record<string, unknown> {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  };
}

export function chatError(type: string, code: string | null, message: string): Record<string, unknown> {
  return { error: { message, type, param: null, code } };
}

function toolDeltas({ id, name, input }: ToolCall, index: number): unknown[] {
  return [
    { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] },
    ...inputPieces(input).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ];
}

function head({ id, model, createdAt }: ModelAnswer, object: string): Record<string, unknown> {
  return { id, object, created: createdAt, model, service_tier: 'default', system_fingerprint: null };
}
