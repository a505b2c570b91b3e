import { expect } from 'chai';
import { ask, PATH, type TestProtocol } from '../support/calls';
import { MODEL } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { chatAnswer, messagesAnswer } from '../support/upstream';

const PDF_URL = { type: 'document', source: { type: 'url', url: 'https://files.example/long.pdf' } };
const PDF_FILE = { type: 'document', source: { type: 'file', file_id: 'file_011CNha8iCJcU1wXNR6q4V8w' } };
const PDF_BASE64 = {
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjQK' },
};
const IMAGE_URL = { type: 'image', source: { type: 'url', url: 'https://files.example/large.png' } };

describe('For request members that may make the vendor read other content, the gateway', () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url, models: { [MODEL]: { tokenizerFactor: 1 } } } },
    configure: (config) => {
      const shared = ['file_id', 'thread', 'previous_response_id'];
      setPolicy(config, 'model-request', { sharedObjects: shared }, 'cost');
      setPolicy(config, 'model-request', { unknownMembers: 'refuse' }, 'speed');
    },
  }));
  beforeEach(() => upstream.reset());

  /** Makes the vendor report a whole context window as input of every call. */
  function readsAll(protocol: TestProtocol): void {
    const usage = { input: 200_000, output: 5 };
    upstream.always(protocol === 'chat' ? chatAnswer({ usage }) : messagesAnswer({ usage }));
  }

  /** Sends ten calls at once and returns how many were answered. */
  async function answeredOfTen(key: string, path: string, body: object): Promise<number> {
    const answers = await Promise.all(Array.from({ length: 10 }, () => gateway.call(path, { key, body })));
    await until('all of it is settled', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
    return answers.filter(({ status }) => status === 200).length;
  }

  const withPart = (part: object) => ask({ messages: [{ role: 'user', content: [part] }] });
  const ROWS: readonly [string, string, object][] = [
    [
      'a prompt that the vendor keeps',
      '/cost/v1/messages',
      { thread: { type: 'continue', previous_message_id: 'msg_1' } },
    ],
    ['a PDF by URL', '/v1/messages', withPart(PDF_URL)],
    ['a PDF by file_id', '/cost/v1/messages', withPart(PDF_FILE)],
    ['a PDF in base64', '/v1/messages', withPart(PDF_BASE64)],
    ['an image by URL', '/v1/messages', withPart(IMAGE_URL)],
    ['an MCP server', '/v1/messages', { mcp_servers: [{ type: 'url', name: 'm', url: 'https://mcp.example' }] }],
    ['an unknown large member', '/v1/messages', { attached_corpus: { id: 'corpus_1' } }],
    ['an unknown switch at an upstream that is not official', '/v1/messages', { brand_new: true }],
  ];
  for (const [name, path, more] of ROWS) {
    it(`holds the cost of a whole context window for ${name}, so that a balance of $0.10 allows no call`, async () => {
      readsAll('messages');
      const { key } = await gateway.newCustomer('100', { balanceLimit: '0.10' });
      expect(await answeredOfTen(key, path, ask(more as Record<string, unknown>))).to.equal(0);
      expect(upstream.calls).to.have.length(0);
    });
  }

  const REFUSED: readonly [string, object, string][] = [
    ['messages', withPart(PDF_FILE), 'messages[0].content'],
    ['messages', ask({ thread: { type: 'resume', thread_id: 'thr_1' } }), 'thread'],
    ['messages', ask({ container: { skills: [{ type: 'custom', skill_id: 'skill_1' }] } }), 'container'],
    ['chat', ask({ container: 'container_1' }), 'container'],
    ['messages', ask({ background: true }), 'background'],
    ['chat', ask({ background: true }), 'background'],
    ['chat', ask({ conversation: 'conv_1' }), 'conversation'],
    ['chat', ask({ prompt: { id: 'pmpt_1' } }), 'prompt'],
    ['chat', withPart({ type: 'file', file: { file_id: 'file-1' } }), 'messages[0].content'],
  ];
  for (const [protocol, body, param] of REFUSED) {
    it(`answers 400 NOT_SUPPORTED to ${JSON.stringify(body).slice(40, 140)} in ${protocol}`, async () => {
      const { key } = await gateway.newCustomer('100');
      const { status, json } = await gateway.call(PATH[protocol as TestProtocol], { key, body });
      expect([status, json.error?.code, json.error?.param]).to.deep.equal([400, 'NOT_SUPPORTED', param]);
      expect(upstream.calls).to.have.length(0);
    });
  }

  it('forwards a small unknown member, and reports it in the log and in a metric', async () => {
    upstream.always(messagesAnswer());
    const { key } = await gateway.newCustomer('10');
    const { status, text } = await gateway.call('/v1/messages', { key, body: ask({ brand_new: true }) });
    expect(status, text).to.equal(200);
    expect(upstream.calls[0]?.json).to.have.property('brand_new', true);
    await until('a log line names the member', () => gateway.output().includes('brand_new') || undefined);
    const metrics = (await gateway.admin('GET', '/metrics')).text;
    expect(metrics).to.match(/^tollgate_unknown_members_total\{protocol="messages",treatment="outside"\} [1-9]/m);
  });

  it('holds no money for a full context window if the call has only the members that coding agents always send', async () => {
    upstream.always(messagesAnswer());
    const { key } = await gateway.newCustomer('0.10');
    const body = ask({
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'system', content: [], output_config: { effort: 'low' } },
      ],
      thinking: { type: 'between_tools' },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      output_config: { effort: 'medium' },
      metadata: { user_id: 'u'.repeat(150) },
      system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }],
      tools: [{ name: 'Bash', input_schema: { type: 'object', properties: {} } }],
    });
    const { status, text } = await gateway.call('/v1/messages', { key, body });
    expect(status, text).to.equal(200);
  });

  it('refuses an unknown member if the setting `unknownMembers` is `refuse`', async () => {
    const { key } = await gateway.newCustomer('1');
    const { status, json } = await gateway.call('/speed/v1/messages', { key, body: ask({ brand_new: true }) });
    expect([status, json.error.code, json.error.param]).to.deep.equal([400, 'NOT_SUPPORTED', 'brand_new']);
  });
});

describe('The largest possible output of a call', () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url, models: { [MODEL]: { context: 400_000, maxOutput: 128_000 } } } },
    configure: (config) => setPolicy(config, 'reserve-settle', { withoutLimit: 'insert' }, 'cost'),
  }));
  beforeEach(() => upstream.reset());

  const withoutLimit = { model: MODEL, messages: [{ role: 'user', content: 'Hello' }] };

  it('is inserted as the output limit into a forwarded body that has none, with the setting `withoutLimit: insert`', async () => {
    upstream.always(chatAnswer());
    const { key } = await gateway.newCustomer('10');
    expect((await gateway.call('/cost/v1/chat/completions', { key, body: withoutLimit })).status).to.equal(200);
    expect((await gateway.call(PATH.chat, { key, body: withoutLimit })).status).to.equal(200);
    expect(upstream.calls[0]?.json).to.have.property('max_tokens', 128_000);
    expect(upstream.calls[1]?.json).to.not.have.property('max_tokens');
  });
});
