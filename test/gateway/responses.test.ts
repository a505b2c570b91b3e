import { expect } from 'chai';
import { askIn, PATH } from '../support/calls';
import { type Answered, MODEL, PRICE } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import {
  respond,
  responsesAnswer,
  responsesErrorStream,
  responsesFailedAnswer,
  responsesStream,
} from '../support/upstream';

const TOOL = {
  type: 'function' as const,
  name: 'get_weather',
  strict: true,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

describe('The Responses endpoint', () => {
  const upstream = useUpstream();
  const backing = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    const price = { ...PRICE, pieces: { webSearch: 0.01 }, tiers: { priority: { factor: 2 } } };
    const timeouts = { connect: '1s', headers: '5s', idle: '1s' };
    return {
      upstreams: {
        acme: {
          url: upstream.url,
          timeouts,
          unpricedTools: 'refuse',
          tier: 'official',
          models: { [MODEL]: { price }, two: {}, three: { tokenizerFactor: 1 } },
        },
        backing: { url: backing.url, models: { two: {}, three: { tokenizerFactor: 1 } } },
        'only-chat': { url: upstream.url, adapter: 'chat', translate: 'never', models: { 'chat-model': {} } },
      },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('100'));
  });
  beforeEach(() => {
    upstream.reset();
    backing.reset();
  });

  const call = (more: Record<string, unknown> = {}): Promise<Answered> =>
    gateway.call(PATH.responses, { key, body: askIn('responses', more) });
  const recordOf = (answer: Answered) => gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
  const lastOf = ({ text }: Answered) => {
    const last = text.trimEnd().split('\n\n').at(-1) ?? '';
    return JSON.parse(last.slice(last.indexOf('data: ') + 'data: '.length));
  };

  it('refuses a model whose upstream supports only another protocol, and names the path that serves the model', async () => {
    const answer = await call({ model: 'chat-model' });
    expect([answer.status, answer.json.error.code]).to.deep.equal([400, 'MODEL_NOT_SUPPORTED']);
    expect(answer.json.error.message).to.include('/v1/chat/completions');
  });

  it('calls the next candidate if a response has failed before any content', async () => {
    for (const [model, script, stream] of [
      ['two', responsesErrorStream({ afterEvents: 2, isFailed: true }), true],
      ['three', responsesFailedAnswer(), false],
    ] as const) {
      upstream.next(script);
      backing.next(stream ? responsesStream() : responsesAnswer());
      const answer = await call({ model, stream });
      expect(answer.headers).to.include({ 'x-routing-provider': 'backing', 'x-routing-attempts': '2' });
    }
  });

  it('relays a failure after content unchanged, and charges nothing', async () => {
    const script = responsesErrorStream({ afterEvents: 5, isFailed: true });
    upstream.next(script);
    const answer = await call({ stream: true });
    expect(answer.text).to.equal(script.text);
    expect(await recordOf(answer)).to.include({ billing: 'released', cost: '0.00000000' });
  });

  it('charges hidden reasoning, and an answer that its output limit ended', async () => {
    const usage = { input: 1_000, output: 150 };
    for (const stream of [false, true]) {
      upstream.next(stream ? responsesStream({ usage, stop: 'length' }) : responsesAnswer({ usage, stop: 'length' }));
      const answer = await call({ stream });
      expect(stream ? lastOf(answer).type : answer.json.status).to.match(/incomplete$/);
      expect(await recordOf(answer)).to.include({ billing: 'actual', cost: '0.00525000', outputTokens: 150 });
    }
  });

  describe('in a call', () => {
    const refusals: readonly [string, Record<string, unknown> | string, number, string, string][] = [
      ['background', { background: true }, 400, 'NOT_SUPPORTED', 'background'],
      ['a prompt template', { prompt: { id: 'pmpt_1' } }, 400, 'NOT_SUPPORTED', 'prompt'],
      [
        'an item of another account',
        { input: [{ type: 'item_reference', id: 'msg_1' }] },
        404,
        'KEPT_OBJECT_NOT_FOUND',
        'input[0]',
      ],
      ['an item without a type', { input: [{ id: 'msg_1' }] }, 404, 'KEPT_OBJECT_NOT_FOUND', 'input[0]'],
      [
        'an item whose type is given twice',
        `{"model":"${MODEL}","input":[{"type":"item_reference","id":"msg_1","type":"message"}]}`,
        400,
        'MODEL_NOT_PRICED',
        'input[0]',
      ],
      [
        'a file of the vendor',
        { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] },
        400,
        'NOT_SUPPORTED',
        'input[0]',
      ],
      [
        'a file in the output of a tool',
        {
          input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', file_id: 'file-1' }] }],
        },
        400,
        'NOT_SUPPORTED',
        'input[0]',
      ],
      [
        'a vector store',
        { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
        400,
        'NOT_SUPPORTED',
        'tools[0].type',
      ],
      ['image generation', { tools: [{ type: 'image_generation' }] }, 400, 'MODEL_NOT_PRICED', 'tools[0].type'],
      ['a shell at the vendor', { tools: [{ type: 'shell' }] }, 400, 'MODEL_NOT_PRICED', 'tools[0].type'],
      [
        'a large container',
        { tools: [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '64g' } }] },
        400,
        'MODEL_NOT_PRICED',
        'tools[0].type',
      ],
      [
        'a tool that an item adds',
        { input: [{ type: 'additional_tools', role: 'developer', tools: [{ type: 'image_generation' }] }] },
        400,
        'MODEL_NOT_PRICED',
        'input[0]',
      ],
      ['an unknown role', { input: [{ role: 'tool', content: 'x' }] }, 400, 'INVALID_FIELD', 'input[0].role'],
      ['no input', { input: undefined }, 400, 'INVALID_FIELD', 'input'],
      ['an input that is a number', { input: 7 }, 400, 'INVALID_FIELD', 'input'],
      ['a limit of 0', { max_output_tokens: 0 }, 400, 'INVALID_FIELD', 'max_output_tokens'],
      ['a temperature above 2', { temperature: 2.1 }, 400, 'INVALID_FIELD', 'temperature'],
    ];
    for (const [title, more, status, code, param] of refusals) {
      it(`answers ${status} ${code} to ${title}`, async () => {
        const body = typeof more === 'string' ? more : { ...askIn('responses'), ...more };
        const answer = await gateway.call(PATH.responses, { key, body });
        expect([answer.status, answer.json.error.code, answer.json.error.param]).to.deep.equal([status, code, param]);
        expect(upstream.calls).to.have.length(0);
      });
    }

    it('treats null like an absent member', async () => {
      upstream.next(responsesAnswer());
      const absent = ['instructions', 'max_output_tokens', 'temperature', 'tools', 'background', 'prompt', 'stream'];
      const more = Object.fromEntries(absent.map((name) => [name, null]));
      expect((await call(more)).status).to.equal(200);
    });

    it('holds no extra money for tools of the client and for items of an earlier answer', async () => {
      const { key: poor } = await gateway.newCustomer('0.5');
      upstream.always(responsesAnswer());
      const tools = [
        TOOL,
        { type: 'custom', name: 'apply' },
        { type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'function', name: 'f' }] },
        { type: 'local_shell' },
        { type: 'shell', environment: { type: 'local' } },
        { type: 'apply_patch' },
        { type: 'tool_search', execution: 'client', parameters: { type: 'object', additionalProperties: false } },
      ];
      const input = [
        { role: 'user', content: 'Hello' },
        { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' },
        { type: 'shell_call', call_id: 'c', action: { commands: ['ls'] } },
        { type: 'shell_call_output', call_id: 'c', output: [{ stdout: 'x', stderr: '', outcome: { type: 'exit' } }] },
        { type: 'custom_tool_call', call_id: 'd', name: 'apply', input: '***' },
        { type: 'custom_tool_call_output', call_id: 'd', output: 'done' },
        { type: 'tool_search_output', call_id: 'e', tools: [TOOL], execution: 'client' },
        { type: 'compaction', encrypted_content: 'gAAAA' },
      ];
      const body = { ...askIn('responses', { model: 'three' }), input, tools, client_metadata: { session_id: 's' } };
      const answer = await gateway.call(PATH.responses, { key: poor, body });
      expect(answer.status, answer.text).to.equal(200);
      // The vendor reads reasoning that only it has, so only the context window bounds the input.
      const hidden = { ...body, input: [...input, { type: 'reasoning', id: 'rs_2', summary: [] }] };
      expect((await gateway.call(PATH.responses, { key: poor, body: hidden })).status).to.equal(402);
    });

    it("refuses a tool with JSON keys that differ only in case, before or after the tool's schema", async () => {
      for (const more of [
        { Execution: 'server' },
        { parameters: { additionalProperties: false }, EXECUTION: 'server' },
      ]) {
        const tools = [{ type: 'tool_search', execution: 'client', ...more }];
        const answer = await gateway.call(PATH.responses, { key, body: { ...askIn('responses'), tools } });
        expect([answer.status, answer.json.error.param]).to.deep.equal([400, 'tools[0]']);
      }
    });

    it('charges each web search, and adds a limit of searches to the upstream request', async () => {
      upstream.next(
        respond({
          body: {
            object: 'response',
            status: 'completed',
            error: null,
            output: [
              { type: 'web_search_call', action: { type: 'search' } },
              { type: 'web_search_call', action: { type: 'open_page' } },
            ],
            usage: { input_tokens: 10, output_tokens: 5 },
          },
        }),
      );
      const answer = await call({ tools: [{ type: 'web_search' }] });
      expect(answer.status, answer.text).to.equal(200);
      expect(upstream.calls[0]?.json).to.include({ max_tool_calls: 1 });
      expect(await recordOf(answer)).to.include({ cost: '0.01010500' });
      upstream.next(responsesAnswer());
      await call({ tools: [{ type: 'web_search' }], max_tool_calls: 2 });
      expect(upstream.calls[1]?.json).to.include({ max_tool_calls: 2 });
    });
  });
});
