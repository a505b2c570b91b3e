import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import OpenAI from 'openai';
import { PATH } from '../support/calls';
import { answerOf } from '../support/dialects';
import { answerIn, UPSTREAM_DIALECTS, type UpstreamDialect } from '../support/directions';
import type { TestEndpoint } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { thinking } from '../support/thinking';

type Json = Readonly<Record<string, unknown>>;

const SIGNATURE = 'EpwCk+/signature==';
const CALL = { id: 'call_1', name: 'weather', input: { city: 'Łódź' } };
const THOUGHT = { thought: 'I should look.', signature: SIGNATURE, calls: [CALL] };
const SCHEMA = { type: 'object' as const, properties: { city: { type: 'string' } } };

/** The client protocols with a place for signatures, each with the other dialects whose upstreams need their reasoning back. */
const DIRECTIONS = (['messages', 'responses'] as const).flatMap((from) =>
  UPSTREAM_DIALECTS.filter((to) => to !== from).map((to) => ({ from, to })),
);
type Client = (typeof DIRECTIONS)[number]['from'];

/** The part of a request with which a signature returns to the upstream that made it. */
const RESTORED: Readonly<Record<(typeof DIRECTIONS)[number]['to'], unknown>> = {
  messages: { type: 'thinking', thinking: THOUGHT.thought, signature: SIGNATURE },
  responses: {
    type: 'reasoning',
    id: 'rs_1',
    summary: [{ type: 'summary_text', text: THOUGHT.thought }],
    encrypted_content: SIGNATURE,
  },
  chat: {
    role: 'assistant',
    content: null,
    reasoning_content: THOUGHT.thought,
    tool_calls: [
      { id: CALL.id, type: 'function', function: { name: CALL.name, arguments: JSON.stringify(CALL.input) } },
    ],
  },
  gemini: { functionCall: { id: CALL.id, name: CALL.name, args: CALL.input }, thoughtSignature: SIGNATURE },
};

describe('Signatures of reasoning in translated calls', () => {
  const upstream = useUpstream();
  let key: string;
  let anthropic: Anthropic;
  let openai: OpenAI;

  const gateway = useGateway(() => {
    const at = (dialect: UpstreamDialect, model: string): TestEndpoint => ({
      url: upstream.url,
      adapter: dialect,
      models: { [model]: {} },
    });
    return {
      upstreams: Object.fromEntries(
        UPSTREAM_DIALECTS.flatMap((dialect) => [
          [`one-${dialect}`, at(dialect, `${dialect}-model`)],
          [`two-${dialect}`, at(dialect, `${dialect}-other`)],
        ]),
      ),
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
    anthropic = new Anthropic({ baseURL: gateway.url, apiKey: key, maxRetries: 0 });
    openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());

  /** Makes a first call with an SDK and returns the conversation for the next one: the whole answer and the tool results. */
  const FIRST: Readonly<Record<Client, (model: string, isStream: boolean) => Promise<readonly unknown[]>>> = {
    messages: async (model, isStream) => {
      const body = {
        model,
        max_tokens: 200,
        tools: [{ name: 'weather', input_schema: SCHEMA }],
        messages: [{ role: 'user' as const, content: 'Weather?' }],
      };
      const message = isStream
        ? await anthropic.messages.stream(body).finalMessage()
        : await anthropic.messages.create(body);
      const results = message.content.flatMap((block) =>
        block.type === 'tool_use' ? [{ type: 'tool_result', tool_use_id: block.id, content: 'Rain.' }] : [],
      );
      return [...body.messages, { role: 'assistant', content: message.content }, { role: 'user', content: results }];
    },
    responses: async (model, isStream) => {
      const body = {
        model,
        max_output_tokens: 200,
        store: false,
        include: ['reasoning.encrypted_content' as const],
        tools: [{ type: 'function' as const, name: 'weather', parameters: SCHEMA, strict: false }],
        input: 'Weather?',
      };
      const response = isStream
        ? await openai.responses.stream(body).finalResponse()
        : await openai.responses.create(body);
      const results = response.output.flatMap((item) =>
        item.type === 'function_call' ? [{ type: 'function_call_output', call_id: item.call_id, output: 'Rain.' }] : [],
      );
      // Remove members that the SDK adds after parsing.
      const output = response.output.map((item) => {
        const { parsed_arguments: _, ...own } = item as unknown as Json;
        return own;
      });
      return [{ role: 'user', content: 'Weather?' }, ...output, ...results];
    },
  };

  const MEMBER: Readonly<Record<Client, string>> = { messages: 'messages', responses: 'input' };

  function nextBody(from: Client, model: string, said: readonly unknown[]): Json {
    const tools =
      from === 'messages'
        ? [{ name: 'weather', input_schema: SCHEMA }]
        : [{ type: 'function', name: 'weather', parameters: SCHEMA }];
    const limit = from === 'messages' ? { max_tokens: 200 } : { max_output_tokens: 200, store: false };
    return { model, ...limit, tools, [MEMBER[from]]: said };
  }

  async function next(from: Client, model: string, said: readonly unknown[]): Promise<unknown> {
    const answered = await gateway.call(PATH[from], { key, body: nextBody(from, model, said) });
    expect(answered.status, answered.text).to.equal(200);
    return upstream.calls.at(-1)?.json;
  }

  for (const { from, to } of DIRECTIONS)
    for (const isStream of [false, true])
      it(`are returned only to the ${to} upstream that made them, by a ${from} client (${isStream ? 'streamed' : 'in one piece'})`, async () => {
        upstream.next(thinking(to, THOUGHT, isStream));
        const said = await FIRST[from](`${to}-model`, isStream);
        expect(JSON.stringify(said)).to.include('"tollgate.').and.to.not.include(SIGNATURE);

        upstream.always(answerIn(to));
        expect(partsIn(await next(from, `${to}-model`, said))).to.deep.include(RESTORED[to]);
        const elsewhere = JSON.stringify(await next(from, `${to}-other`, said));
        expect(elsewhere)
          .to.include('Rain.')
          .and.to.not.match(/tollgate\.|signature==|should look|thinking|"reasoning"/);

        upstream.always(answerIn('chat'));
        const atChat = JSON.stringify(await next(from, 'chat-other', said));
        expect(atChat)
          .to.include('Rain.')
          .and.to.not.match(/tollgate\.|signature==|should look/);
      });

  describe('are cut out of native calls', () => {
    /** Returns a body in an unusual notation, with the given part at the position of the reasoning. */
    const BODIES: Readonly<Record<Client, (part: string) => string>> = {
      messages: (part) =>
        `{ "model":"messages-model",\n\t"max_tokens" : 2e2, "messages":[ {"role":"user","content":"W\\u0065ather? 🌧"}, {"content" : [ ${part}{"type":"text","text":"Let me \\/ see: \\"tollgate.x\\"", "cache_control":{"type":"ephemeral"}} ,{"type":"tool_use","id":"call_1","name":"weather","input":{"signature":"tollgate.mine", "big":12345678901234567890.10}}  ],"role":"assistant"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"Rain."}]} ] , "tools":[{"name":"weather","input_schema":{"type":"object"}}] }`,
      responses: (part) =>
        `{"store":false , "model":"responses-model",\n "input":[ {"role":"user","content":"W\\u0065ather? 🌧"},  ${part}{"type":"function_call", "call_id":"call_1","name":"weather","arguments":"{\\"encrypted_content\\":\\"tollgate.mine\\"}"} , {"type":"function_call_output","call_id":"call_1","output":"Rain."}],"max_output_tokens": 200 }`,
    };

    for (const { from, to } of DIRECTIONS)
      it(`of a ${from} client that received them from ${to}, with every other byte unchanged`, async () => {
        upstream.next(thinking(to, { ...THOUGHT, text: 'Let me see.' }, true));
        const said = await FIRST[from](`${to}-model`, true);
        const sealed = partsIn({ [MEMBER[from]]: said }).filter((part) => JSON.stringify(part).includes('"tollgate.'));
        expect(sealed).to.have.length.within(1, 2);
        const body = BODIES[from];
        upstream.always(answerOf[from]());
        await gateway.call(PATH[from], { key, body: body('') });
        const untouched = upstream.calls.at(-1)?.body.toString();
        expect(untouched).to.equal(body(''));
        const parts = sealed.map((part) => `${JSON.stringify(part)} ,  `).join('');
        const answered = await gateway.call(PATH[from], { key, body: body(parts) });
        expect(answered.status, answered.text).to.equal(200);
        expect(upstream.calls.at(-1)?.body.toString()).to.equal(untouched);
      });
  });

  describe('that a client forges', () => {
    const sealed = (text: string) => `tollgate.${Buffer.from(text).toString('base64url')}`;
    const inOne = (value: unknown, dialect: string) => sealed(JSON.stringify([dialect, `one-${dialect}`, value]));
    const stolen = { type: 'item_reference', id: 'rs_of_another' };
    const FORGED: Readonly<Record<string, string>> = {
      'an empty signature': 'tollgate.',
      'invalid base64': 'tollgate.%%%\u0000🌧',
      'invalid JSON': sealed('{"half"'),
      'an object instead of a list': sealed('{"0":"responses"}'),
      'numbers instead of texts': sealed('[1,2,3]'),
      'a name of the prototype': sealed('["__proto__","constructor","toString"]'),
      'deep JSON': sealed(`${'['.repeat(50_000)}`),
      'deep JSON as the value': inOne('['.repeat(50_000), 'responses'),
      'an item of another account': inOne(JSON.stringify(stolen), 'responses'),
      'an item of another account with a signature': inOne(
        JSON.stringify({ ...stolen, encrypted_content: 'x', content: [{ type: 'input_file', file_id: 'file-1' }] }),
        'responses',
      ),
      'a kept item by its id alone': inOne(JSON.stringify({ id: 'rs_of_another', summary: [] }), 'responses'),
      'a member of a message that is no reasoning': inOne('content', 'chat'),
      'an item with a prototype': inOne(
        '{"__proto__":{"type":"item_reference"},"encrypted_content":{"a":1}}',
        'responses',
      ),
    };

    for (const [what, signature] of Object.entries(FORGED))
      it(`have no effect: ${what}`, async () => {
        for (const { from, to } of DIRECTIONS) {
          const part =
            from === 'messages'
              ? [{ role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature }, text('Yes?')] }]
              : [{ type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: signature }];
          const said = [{ role: 'user', content: 'Hi' }, ...part, { role: 'user', content: 'Go on' }];
          upstream.next(answerIn(to));
          const got = JSON.stringify(await next(from, `${to}-model`, said));
          expect(got).to.not.match(/item_reference|file_id|tollgate\./);
          if (!what.includes('with a signature')) expect(got).to.not.match(/rs_of_another|Hm\./);
        }
      });

    it('cannot insert an object instead of hidden reasoning into a Messages call', async () => {
      const data = inOne(JSON.stringify({ redacted_thinking: { type: 'document' } }), 'messages');
      const said = [
        { role: 'user', content: 'Hi' },
        { type: 'reasoning', summary: [], encrypted_content: data },
        { role: 'user', content: 'Go on' },
      ];
      upstream.next(answerIn('messages'));
      const got = JSON.stringify(await next('responses', 'messages-model', said));
      expect(got).to.not.match(/"type":"(redacted_thinking|document)"/);
    });

    it('or takes from another account are charged to the account that sends them', async () => {
      upstream.next(thinking('responses', THOUGHT, false));
      const said = await FIRST.messages('responses-model', false);
      const thief = await gateway.newCustomer('1');
      const before = await gateway.balance(key);
      upstream.next(answerIn('responses', { usage: { input: 100, output: 10 } }));
      const answered = await gateway.call(PATH.messages, {
        key: thief.key,
        body: nextBody('messages', 'responses-model', said),
      });
      expect(answered.status).to.equal(200);
      expect(await gateway.balance(key)).to.deep.equal(before);
      const record = await gateway.record(thief.key, answered.headers['x-svc-request-id'] ?? '');
      expect(record).to.include({ cost: '0.00045000', billing: 'actual' });
    });
  });

  const text = (words: string) => ({ type: 'text', text: words });

  it('are never sent to a Chat client, because the protocol has no member for them', async () => {
    for (const to of ['messages', 'responses', 'gemini'] as const) {
      upstream.next(thinking(to, THOUGHT, false));
      const body = { model: `${to}-model`, messages: [{ role: 'user', content: 'Hi' }] };
      const answered = await gateway.call(PATH.chat, { key, body });
      expect(answered.text)
        .to.include('weather')
        .and.to.not.match(/tollgate\.|signature==|should look/);
    }
  });
});

/** Returns all parts and items of a request's conversation. */
function partsIn(body: unknown): readonly unknown[] {
  const { messages, input, contents } = body as Record<'messages' | 'input' | 'contents', readonly Json[] | undefined>;
  return (messages ?? input ?? contents ?? []).flatMap((each) => {
    const inner = each['content'] ?? each['parts'];
    return Array.isArray(inner) ? (inner as readonly unknown[]) : [each];
  });
}
