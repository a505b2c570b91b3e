import type { Prompt } from './counting';
import { type Json, object, objectsOf } from './json';
import {
  type Counts,
  piecesOf,
  type RefusalBody,
  type RefusalKind,
  type ToolCall,
  type Turn,
  type Written,
} from './turn';

/** Reads a Chat request according to the types of `openai`, with `reasoning_content`, which vendors of reasoning models add. */
export function readChat(body: Json): Prompt {
  const pieces = [{ tools: body['tools'] }, ...objectsOf(body['messages'])];
  return { pieces, kept: pieces.length, writes: undefined };
}

export function writeChat(turn: Turn, counts: Counts, model: string, id: string, request: Json): Written {
  const calls = turn.parts.filter((part) => part.kind === 'call');
  const text = textOf(turn, 'text');
  const thought = textOf(turn, 'reasoning');
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  const head = {
    id: `chatcmpl-${id}`,
    created: 1_790_000_000,
    model,
    service_tier: 'default',
    system_fingerprint: null,
  };
  const usage = usageOf(counts);
  const asksForUsage = object(request['stream_options'])['include_usage'] === true;
  const chunk = (choices: readonly unknown[], used: unknown = null): string =>
    data({ ...head, object: 'chat.completion.chunk', choices, ...(asksForUsage ? { usage: used } : {}) });
  const delta = (fields: unknown, reason: string | null = null): string =>
    chunk([{ index: 0, delta: fields, logprobs: null, finish_reason: reason }]);
  return {
    body: {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message: messageOf(text, thought, calls, id), logprobs: null, finish_reason: finish }],
      usage,
    },
    events: [
      delta({ role: 'assistant', content: text === '' ? null : '', refusal: null }),
      ...piecesOf(thought).map((piece) => delta({ reasoning_content: piece })),
      ...piecesOf(text).map((content) => delta({ content })),
      ...calls.flatMap((call, index) => callDeltas(call, index, id).map((fields) => delta(fields))),
      delta({}, finish),
      ...(asksForUsage ? [chunk([], usage)] : []),
      data('[DONE]'),
    ],
  };
}

const REFUSALS: Readonly<Record<RefusalKind, readonly [number, string, string | null, string]>> = {
  invalid: [400, 'invalid_request_error', null, 'Invalid tool: the vendor does not take it.'],
  tooLong: [
    400,
    'invalid_request_error',
    'context_length_exceeded',
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
  ],
  rateLimited: [429, 'requests', 'rate_limit_exceeded', 'Rate limit reached. Please try again in 1s.'],
  broken: [500, 'server_error', null, 'The server had an error while processing your request.'],
};

/** Makes an error in the form that Chat and Responses share. */
export function refuseOpenAI(kind: RefusalKind): RefusalBody {
  const [status, type, code, message] = REFUSALS[kind];
  return {
    status,
    headers: kind === 'rateLimited' ? { 'retry-after': '1' } : {},
    body: { error: { message, type, param: null, code } },
  };
}

function textOf({ parts }: Turn, kind: 'text' | 'reasoning'): string {
  return parts.map((part) => (part.kind === kind ? part.text : '')).join('');
}

function messageOf(text: string, thought: string, calls: readonly ToolCall[], id: string): Json {
  const content = text === '' && calls.length > 0 ? null : text;
  const reasoned = thought === '' ? {} : { reasoning_content: thought };
  const message = { role: 'assistant', content, ...reasoned, refusal: null, annotations: [] };
  if (calls.length === 0) return message;
  const written = calls.map(({ name, input }, index) => ({
    id: callId(id, index),
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }));
  return { ...message, tool_calls: written };
}

function callDeltas({ name, input }: ToolCall, index: number, id: string): readonly Json[] {
  const begun = { index, id: callId(id, index), type: 'function', function: { name, arguments: '' } };
  const pieces = piecesOf(input).map((piece) => ({ index, function: { arguments: piece } }));
  return [begun, ...pieces].map((call) => ({ tool_calls: [call] }));
}

function callId(id: string, index: number): string {
  return `call_${id}_${index}`;
}

/** Writes the usage. The prompt's count includes cached tokens. */
function usageOf(counts: Counts): Json {
  const prompt = counts.input + counts.cacheRead;
  return {
    prompt_tokens: prompt,
    completion_tokens: counts.output,
    total_tokens: prompt + counts.output,
    prompt_tokens_details: { cached_tokens: counts.cacheRead, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: counts.reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

function data(value: unknown): string {
  return `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
}
