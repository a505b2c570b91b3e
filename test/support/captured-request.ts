/** The length of the captured body in bytes. */
const BODY_BYTES = 47_552;
const TOOLS = 12;
/** The lengths of the measured tool descriptions. The other tools share the rest of the body. */
const DESCRIPTIONS = [3_225, 2_110, 360];

const EPHEMERAL = { cache_control: { type: 'ephemeral' } };

export const CAPTURED_PATH = '/v1/messages?beta=true';

/** The headers that affect the answer, without credentials and machine names. */
export const CAPTURED_HEADERS = {
  'anthropic-version': '2023-06-01',
  'anthropic-beta': [
    'claude-code-20250219',
    'interleaved-thinking-2025-05-14',
    'context-management-2025-06-27',
    'per-turn-control-2026-07-01',
    'mid-conversation-tool-changes-2026-07-01',
    'thinking-token-count-2026-05-13',
    'advanced-tool-use-2025-11-20',
    'effort-2025-11-24',
  ].join(','),
  'anthropic-dangerous-direct-browser-access': 'true',
  'x-app': 'cli',
  'x-stainless-retry-count': '0',
  'x-stainless-timeout': '600',
};

/** Returns the first request of Claude Code 2.1.330 with the captured members and lengths, and prose instead of the texts. */
export function capturedRequest(model: string): Record<string, unknown> {
  const bytes = (body: object) => Buffer.byteLength(JSON.stringify(body));
  const others = TOOLS - DESCRIPTIONS.length;
  const left = BODY_BYTES - bytes(bodyWith(model, [...DESCRIPTIONS, ...Array<number>(others).fill(0)]));
  const each = Math.floor(left / others);
  const last = left - each * (others - 1);
  return bodyWith(model, [...DESCRIPTIONS, ...Array<number>(others - 1).fill(each), last]);
}

function bodyWith(model: string, descriptions: readonly number[]): Record<string, unknown> {
  return {
    model,
    messages: [
      { role: 'user', content: [text(583), { type: 'text', text: 'say hello' }] },
      { role: 'system', content: [{ ...text(9_210), ...EPHEMERAL }], output_config: { effort: 'medium' } },
    ],
    system: [text(74), { ...text(62), ...EPHEMERAL }, { ...text(5_537), ...EPHEMERAL }],
    tools: descriptions.map((length, at) => ({
      name: `tool_${at}`,
      description: prose(length),
      input_schema: { type: 'object', properties: {} },
    })),
    metadata: { user_id: 'u'.repeat(150) },
    max_tokens: 128_000,
    thinking: { type: 'adaptive', display: 'omitted' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    output_config: { effort: 'medium' },
    stream: true,
  };
}

const text = (length: number) => ({ type: 'text', text: prose(length) });

const SENTENCE = 'Read the file before you change it, and run its tests when the change is complete. ';

function prose(length: number): string {
  return SENTENCE.repeat(Math.ceil(length / SENTENCE.length)).slice(0, length);
}
