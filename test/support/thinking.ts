import { sseEvent } from '../../demo/dialects/answer';
import type { UpstreamDialect } from './directions';
import { respond, type Script, stream } from './upstream';

/** A model's answer with reasoning that only its vendor can read, and optional tool calls. */
export interface Thought {
  readonly thought: string;
  readonly signature: string;
  readonly text?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly input: object }[];
  /** Reasoning tokens, in addition to 100 input and 40 output tokens. */
  readonly reasoningTokens?: number;
}

type Json = Readonly<Record<string, unknown>>;

/** Writes the answer in a dialect. Chat has a member for the reasoning, and none for its signature. */
export function thinking(dialect: UpstreamDialect, said: Thought, isStream: boolean): Script {
  const { body, events } = WRITERS[dialect](said);
  return isStream ? stream(events, 0) : respond({ body });
}

type Writer = (said: Thought) => { readonly body: Json; readonly events: readonly string[] };

const WRITERS: Readonly<Record<UpstreamDialect, Writer>> = {
  messages: ({ thought, signature, text, calls = [] }) => {
    const content: Json[] = [
      { type: 'thinking', thinking: thought, signature },
      ...(text === undefined ? [] : [{ type: 'text', text }]),
      ...calls.map((call) => ({ type: 'tool_use', ...call })),
    ];
    const stop = { stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn', stop_sequence: null };
    const usage = { input_tokens: 100, output_tokens: 40 };
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', ...stop, usage };
    const named = (type: string, fields: Json) => sseEvent({ type, ...fields }, type);
    return {
      body: { ...message, content },
      events: [
        named('message_start', { message: { ...message, content: [], stop_reason: null } }),
        ...content.flatMap((block, index) => [
          named('content_block_start', { index, content_block: emptied(block) }),
          ...deltasOf(block).map((delta) => named('content_block_delta', { index, delta })),
          named('content_block_stop', { index }),
        ]),
        named('message_delta', { delta: stop, usage }),
        named('message_stop', {}),
      ],
    };
  },

  chat: ({ thought, text, calls = [], reasoningTokens = 10 }) => {
    const tool_calls = calls.map(({ id, name, input }, index) => ({
      index,
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(input) },
    }));
    const message = { content: text ?? null, ...(calls.length > 0 && { tool_calls }) };
    const head = { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'c' };
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 40,
      total_tokens: 140,
      completion_tokens_details: { reasoning_tokens: reasoningTokens },
    };
    const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop';
    const whole = { role: 'assistant', reasoning_content: thought, ...message };
    const chunk = (delta: Json, more: Json = {}) => ({ ...head, choices: [{ index: 0, delta, ...more }] });
    return {
      body: { ...head, choices: [{ index: 0, message: whole, finish_reason }], usage },
      events: [
        chunk({ role: 'assistant', reasoning_content: thought.slice(0, 1) }),
        chunk({ reasoning_content: thought.slice(1) }),
        chunk(message),
        chunk({}, { finish_reason }),
        { ...head, choices: [], usage },
      ]
        .map((each) => sseEvent(each))
        .concat('data: [DONE]\n\n'),
    };
  },

  responses: ({ thought, signature, text, calls = [], reasoningTokens = 10 }) => {
    const reasoning = {
      id: 'rs_1',
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: thought }],
      encrypted_content: signature,
    };
    const content = [{ type: 'output_text', text, annotations: [] }];
    const output: Json[] = [
      reasoning,
      ...(text === undefined
        ? []
        : [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }]),
      ...calls.map(({ id, name, input }) => ({
        id: `fc_${id}`,
        type: 'function_call',
        status: 'completed',
        call_id: id,
        name,
        arguments: JSON.stringify(input),
      })),
    ];
    const usage = {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 40,
      output_tokens_details: { reasoning_tokens: reasoningTokens },
      total_tokens: 140,
    };
    const head = { id: 'resp_1', object: 'response', created_at: 1, model: 'r', error: null, incomplete_details: null };
    const response = { ...head, status: 'completed', output, usage };
    const told = [
      { type: 'response.created', response: { ...head, status: 'in_progress', output: [], usage: null } },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...reasoning, summary: [], encrypted_content: null },
      },
      {
        type: 'response.reasoning_summary_text.delta',
        item_id: 'rs_1',
        output_index: 0,
        summary_index: 0,
        delta: thought,
      },
      ...output.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
      { type: 'response.completed', response },
    ];
    return {
      body: response,
      events: told.map((event, at) => sseEvent({ ...event, sequence_number: at }, event.type)),
    };
  },

  gemini: ({ thought, signature, text, calls = [], reasoningTokens = 10 }) => {
    const parts: Json[] = [
      { text: thought, thought: true },
      ...(text === undefined ? [] : [{ text }]),
      ...calls.map(({ id, name, input }, at) => ({
        functionCall: { id, name, args: input },
        ...(at === 0 && { thoughtSignature: signature }),
      })),
    ];
    const chunk = (some: readonly Json[], last: object) => ({
      candidates: [{ index: 0, content: { role: 'model', parts: some }, ...last }],
      modelVersion: 'g',
    });
    const counts = {
      promptTokenCount: 100,
      candidatesTokenCount: 40 - reasoningTokens,
      thoughtsTokenCount: reasoningTokens,
    };
    const body = { ...chunk(parts, { finishReason: 'STOP' }), usageMetadata: { ...counts, totalTokenCount: 140 } };
    const last = { ...body, ...chunk(parts.slice(1), { finishReason: 'STOP' }) };
    return { body, events: [chunk(parts.slice(0, 1), {}), last].map((each) => sseEvent(each)) };
  },
};

function emptied(block: Json): Json {
  if (block['type'] === 'thinking') return { type: 'thinking', thinking: '', signature: '' };
  return block['type'] === 'text' ? { type: 'text', text: '' } : { ...block, input: {} };
}

function deltasOf(block: Json): readonly Json[] {
  if (block['type'] === 'text') return [{ type: 'text_delta', text: block['text'] }];
  if (block['type'] !== 'thinking') return [{ type: 'input_json_delta', partial_json: JSON.stringify(block['input']) }];
  return [
    { type: 'thinking_delta', thinking: block['thinking'] },
    { type: 'signature_delta', signature: block['signature'] },
  ];
}
