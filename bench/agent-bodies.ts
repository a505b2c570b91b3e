/**
 * The calls of coding agents: a system prompt, the definitions of tools, and a history in which the model has read and changed code.
 * The forms are those of Claude Code (Messages), OpenCode (Chat) and Codex (Responses).
 */
import { MODEL } from './bodies';

export const TOOLS = 18;

const SENTENCE =
  'Work in small steps: read the file before you change it, run the tests that touch it, and say in one sentence what you did and why.';
const LINE =
  '  const total = items.reduce((sum, { price, count }) => sum + price * count, 0);\n\tif (total > limit) throw new RangeError(String(total)); // "limit" is in cents\n';

/** One tool use in the conversation: what the model wrote, the tool's arguments and the result. */
interface Use {
  readonly id: string;
  readonly text: string;
  readonly tool: string;
  readonly input: object;
  readonly result: string;
}

interface Task {
  readonly system: string;
  readonly question: string;
  readonly tools: readonly { name: string; description: string; schema: object }[];
  readonly uses: readonly Use[];
  /** The last message of the conversation. A scripted upstream reads its script from this message. */
  readonly last: string;
  readonly isStream: boolean;
}

const FORMS = {
  messages: ({ system, question, tools, uses, last, isStream }: Task) => ({
    model: MODEL,
    max_tokens: 8_192,
    system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }],
    tools: tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema })),
    metadata: { user_id: 'user_5f2d_account__session_1b0c9a4e-3d59-4f0e-8f59-1f2f6f0a9d11' },
    stream: isStream,
    messages: [
      { role: 'user', content: [{ type: 'text', text: question }] },
      ...uses.flatMap(({ id, text, tool, input, result }) => [
        {
          role: 'assistant',
          content: [
            { type: 'text', text },
            { type: 'tool_use', id, name: tool, input },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: result }] },
      ]),
      { role: 'user', content: last },
    ],
  }),
  chat: ({ system, question, tools, uses, last, isStream }: Task) => ({
    model: MODEL,
    max_tokens: 8_192,
    tools: tools.map(({ name, description, schema }) => ({
      type: 'function',
      function: { name, description, parameters: schema },
    })),
    tool_choice: 'auto',
    ...(isStream && { stream: true, stream_options: { include_usage: true } }),
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: question },
      ...uses.flatMap(({ id, text, tool, input, result }) => [
        {
          role: 'assistant',
          content: text,
          tool_calls: [{ id, type: 'function', function: { name: tool, arguments: JSON.stringify(input) } }],
        },
        { role: 'tool', tool_call_id: id, content: result },
      ]),
      { role: 'user', content: last },
    ],
  }),
  responses: ({ system, question, tools, uses, last, isStream }: Task) => ({
    model: MODEL,
    tools: tools.map(({ name, description, schema }) => ({
      type: 'function',
      name,
      description,
      strict: false,
      parameters: schema,
    })),
    tool_choice: 'auto',
    parallel_tool_calls: true,
    store: false,
    stream: isStream,
    prompt_cache_key: '019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d',
    input: [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: system }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: question }] },
      ...uses.flatMap(({ id, text, tool, input, result }) => [
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] },
        { type: 'function_call', call_id: id, name: tool, arguments: JSON.stringify(input) },
        { type: 'function_call_output', call_id: id, output: result },
      ]),
      { type: 'message', role: 'user', content: last },
    ],
  }),
} as const;

export type AgentForm = keyof typeof FORMS;

/**
 * Makes a call of exactly `bytes` bytes, at least 12,000.
 * @param script tells `programs/scripted-upstream.mjs` what to stream; with it, the call is a streaming call
 */
export function agentBody(form: AgentForm, bytes: number, script?: object): string {
  const last = script === undefined ? 'Now run the tests again.' : JSON.stringify(script);
  const bodyWith = (uses: readonly Use[], fill: number) =>
    JSON.stringify(FORMS[form]({ ...TASK, uses, last, isStream: script !== undefined, question: question(fill) }));
  const uses: Use[] = [];
  while (bodyWith([...uses, use(uses.length)], 0).length <= bytes) uses.push(use(uses.length));
  const body = bodyWith(uses, bytes - bodyWith(uses, 0).length);
  if (Buffer.byteLength(body) !== bytes)
    throw new RangeError(`cannot build a call of exactly ${bytes} bytes; use a larger size`);
  return body;
}

/** Returns a question with `fill` further characters as padding. Each of them is one byte in the body. */
function question(fill: number): string {
  return 'Find out why the total is wrong, and mend it.'.padEnd(45 + fill, ' Look at the callers too.');
}

function use(at: number): Use {
  const file = `/srv/app/src/orders/total-${at}.ts`;
  const changes = at % 3 === 2;
  return {
    id: `call_${String(at).padStart(4, '0')}k7Qm2wX9aB`,
    text: `I look at ${file} first.`,
    tool: changes ? 'tool_3' : 'tool_1',
    input: changes
      ? { file_path: file, old_string: LINE, new_string: LINE.replace('total', 'sum') }
      : { file_path: file, offset: at * 40, limit: 400 },
    result: changes ? `The file ${file} has been updated.` : LINE.repeat(12),
  };
}

const TASK = {
  system: `${SENTENCE}\n\n`.repeat(20),
  tools: Array.from({ length: TOOLS }, (_, at) => ({
    name: `tool_${at}`,
    description: SENTENCE,
    schema: {
      type: 'object',
      properties: {
        file_path: { type: 'string', description: 'The absolute path of the file.' },
        offset: { type: 'number', description: 'The line at which to begin.' },
      },
      required: ['file_path'],
      additionalProperties: false,
    },
  })),
} as const;
