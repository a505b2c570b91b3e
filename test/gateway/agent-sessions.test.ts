import { expect } from 'chai';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { setPolicy } from '../support/policy-settings';
import { showFigures } from '../support/show-figures';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesStream, responsesStream } from '../support/upstream';

/** The length of the captured body in bytes. */
const BODY_BYTES = 47_552;
const TOOLS = 12;
/** The lengths of the measured tool descriptions. The other tools share the rest of the body. */
const DESCRIPTIONS = [3_225, 2_110, 360];

const EPHEMERAL = { cache_control: { type: 'ephemeral' } };

const CAPTURED_PATH = '/v1/messages?beta=true';

/** The headers that affect the answer, without credentials and machine names. */
const CAPTURED_HEADERS = {
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
function capturedRequest(model: string): Record<string, unknown> {
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

const CONTEXT = 272_000;
const MODEL = { context: CONTEXT, maxOutput: 128_000, tokenizerFactor: 1.35 };
/** USD per million tokens. */
const CLAUDE = { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 };
const GPT = { input: 1.25, output: 10, cacheRead: 0.125, pieces: { webSearch: 0.01 } };
/** The sizes of the bodies of a session's turns, in KB. */
const TURNS_KB = [50, 100, 150, 200, 250];
const MIN_OUTPUT = 1_024;

type Body = Record<string, unknown>;

/** Returns what a tool found: lines of a source file, up to this many bytes. */
function found(bytes: number): string {
  const line = (at: number) => `${at}: export const value${at} = compute(${at * 7}, "a text of some words");\n`;
  return Array.from({ length: Math.ceil(bytes / 60) }, (_, at) => line(at))
    .join('')
    .slice(0, Math.max(0, bytes));
}

/** Returns a turn of Claude Code: the first request, and the file that it has read since. */
function claudeCodeTurn(bytes: number): Body {
  const body = capturedRequest('claude');
  const read = { type: 'tool_use', id: 'toolu_1', name: 'tool_0', input: {} };
  const result = (content: string) => ({ type: 'tool_result', tool_use_id: 'toolu_1', content });
  const turn = (content: string) => [
    { role: 'assistant', content: [read] },
    { role: 'user', content: [result(content)] },
  ];
  const messages = body['messages'] as object[];
  const own = JSON.stringify({ ...body, messages: [...messages, ...turn('')] }).length;
  return { ...body, messages: [...messages, ...turn(found((bytes - own) * 0.955))] };
}

/** Returns a turn of Codex, which offers a web search in every call and sets no limit. */
function codexTurn(bytes: number): Body {
  return {
    model: 'gpt',
    instructions: found(20_000),
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Say hello.' }] },
      { type: 'function_call', call_id: 'call_1', name: 'exec_command', arguments: '{"cmd":"cat a.ts"}' },
      { type: 'function_call_output', call_id: 'call_1', output: found((bytes - 21_000) * 0.955) },
    ],
    tools: [
      { type: 'function', name: 'exec_command', parameters: { type: 'object', properties: {} }, strict: false },
      { type: 'web_search' },
    ],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    store: false,
    stream: true,
    include: ['reasoning.encrypted_content'],
  };
}

describe('A session of an agent that grows to 250 KB, with `onInsufficient: clamp`', function () {
  this.timeout(240_000);
  const upstream = useUpstream();

  const gateway = useGateway(() => {
    const { url } = upstream;
    return {
      upstreams: {
        anthropic: { url, models: { claude: { ...MODEL, price: CLAUDE } } },
        openai: { url, adapter: ['chat', 'responses'], models: { gpt: { ...MODEL, tokenizerFactor: 1, price: GPT } } },
      },
      configure: (config) => setPolicy(config, 'reserve-settle', { onInsufficient: 'clamp' }, 'cost'),
    };
  });
  beforeEach(() => upstream.reset());

  const ask = (key: string, path: string, body: Body) =>
    gateway.call(path, { key, body, headers: path.includes('messages') ? CAPTURED_HEADERS : {} });
  const requiredBy = async (path: string, body: Body) => {
    const { status, json } = await ask((await gateway.newCustomer('0.00000001')).key, path, body);
    expect([status, json.error.code]).to.deep.equal([402, 'INSUFFICIENT_BALANCE']);
    return String(json.error.details.requiredUsd);
  };
  const accountOf = async (id: string) => (await gateway.admin('GET', `/admin/v1/accounts/${id}`)).json;
  const settled = async (key: string) => {
    await until('it is settled', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
    return Number((await gateway.balance(key)).balanceUsd);
  };

  /** Makes a turn with the least balance at which it is answered. Returns what the upstream got. */
  async function atLeastBalance(agent: string, path: string, body: Body, vendorUsd: number): Promise<Body> {
    const [minUsd, wholeUsd] = [await requiredBy(`/cost${path}`, body), await requiredBy(path, body)];
    const kilobytes = JSON.stringify(body).length / 1_000;
    showFigures(agent, { kilobytes, leastUsd: Number(minUsd), wholeUsd: Number(wholeUsd), vendorUsd });
    const { key, accountId } = await gateway.newCustomer(minUsd);
    const answered = await ask(key, `/cost${path}`, body);
    expect(answered.status, answered.text).to.equal(200);
    const left = await settled(key);
    // A truthful vendor charges no more than was held.
    expect(left)
      .to.be.closeTo(Number(minUsd) - vendorUsd, 1e-7)
      .and.at.least(0);
    const { flags } = await gateway.record(key, answered.headers['x-svc-request-id'] ?? '');
    expect(flags).to.equal(null);
    expect(await accountOf(accountId)).to.include({ status: 'active', excessUsd: '0.00000000' });
    return upstream.calls.at(-1)?.json as Body;
  }

  it("is answered in Claude Code's format once the balance covers the input and 1,024 tokens of output", async () => {
    const required: number[] = [];
    for (const kilobytes of TURNS_KB) {
      const body = claudeCodeTurn(kilobytes * 1_000);
      const cacheWrite = countTokens(JSON.stringify(body));
      const vendorUsd = (cacheWrite * CLAUDE.cacheWrite + MIN_OUTPUT * CLAUDE.output) / 1e6;
      upstream.reset();
      upstream.always(messagesStream({ usage: { input: 0, cacheWrite, output: MIN_OUTPUT } }));
      const sent = await atLeastBalance('Claude Code', CAPTURED_PATH, body, vendorUsd);
      expect(sent['max_tokens']).to.equal(MIN_OUTPUT);
      required.push(Number(await requiredBy(`/cost${CAPTURED_PATH}`, body)));
    }
    // The whole output costs 1.28 USD more.
    expect(Math.max(...required)).to.be.below((CONTEXT * CLAUDE.cacheWrite) / 1e6 + 0.02);
    expect([...required].sort((a, b) => a - b)).to.deep.equal(required);
  });

  it("is answered in Codex's format once the balance also covers one web search", async () => {
    for (const kilobytes of TURNS_KB) {
      const body = codexTurn(kilobytes * 1_000);
      const input = countTokens(JSON.stringify(body)) + CONTEXT;
      const rawUsage = { input_tokens: input, output_tokens: MIN_OUTPUT, total_tokens: input + MIN_OUTPUT };
      upstream.reset();
      upstream.always(responsesStream({ searches: 1, rawUsage }));
      const vendorUsd = (input * GPT.input + MIN_OUTPUT * GPT.output) / 1e6 + GPT.pieces.webSearch;
      const sent = await atLeastBalance('Codex', '/v1/responses', body, vendorUsd);
      expect(sent).to.include({ max_output_tokens: MIN_OUTPUT, max_tool_calls: 1 });
    }
  });

  it('continues after a search, even if the vendor searches more often than the call permits', async () => {
    const input = 6 * CONTEXT;
    const rawUsage = { input_tokens: input, output_tokens: 100, total_tokens: input + 100 };
    upstream.always(responsesStream({ searches: 500, rawUsage }));
    const { key, accountId } = await gateway.newCustomer('20');
    for (let turn = 1; turn <= 3; turn += 1)
      expect((await ask(key, '/cost/v1/responses', codexTurn(50_000))).status).to.equal(200);
    await settled(key);
    // The upstream charges 6 USD above each hold, which is more than stops a key.
    const { text } = await gateway.admin('GET', '/metrics');
    expect(text).to.match(/^tollgate_excess_usd_total{upstream="openai",cause="upstream"} 1[0-9]\./m);
    await until('the records are written', async () => {
      const { json } = await gateway.admin('GET', `/admin/v1/usage?account=${accountId}`);
      return json.items.length === 3 && json.items.every(({ flags }: { flags: string[] }) => flags.includes('suspect'));
    });
    expect(await accountOf(accountId)).to.include({ status: 'active', excessUsd: '0.00000000' });
  });
});
