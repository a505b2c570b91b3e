import { expect } from 'chai';
import { findAdapter, registerAdapter, withOwnDialect } from '../../../core/catalog/adapters';
import type { Candidate } from '../../../core/catalog/catalog';
import { roughPrice } from '../../../core/catalog/price';
import { defineAdapter, type Protocol, type SseEvent } from '../../../core/catalog/upstream';
import { countsIn } from '../../../core/catalog/usage';
import { clientDialect } from '../../../core/protocols/client-dialects';
import { Translation } from '../../../core/protocols/translation';
import chat from '../../../plugins/upstreams/chat';
import converse from '../../../plugins/upstreams/converse';
import gemini from '../../../plugins/upstreams/gemini';
import messages from '../../../plugins/upstreams/messages';
import responses from '../../../plugins/upstreams/responses';
import { sampleModel, sampleUpstream } from '../../support/catalog-samples';
import { callOf } from '../../support/golden';

const ODD = defineAdapter({
  contract: 'upstream/1',
  name: 'odd',
  dialect: 'odd',
  schema: { type: 'object', properties: {} },
  request: () => ({ path: '/', body: {} }),
  authorize: () => ({}),
  judge: () => 'next',
  answer: () => ({
    event: () => [{ kind: 'error', error: { message: 'Too hot.' } }],
    body: () => [],
    end: () => [],
  }),
});

describe('a translated error event of an upstream', () => {
  it("reaches the adapter's `judge` unchanged, and the client receives only the parsed error message", () => {
    const forget = registerAdapter(ODD);
    const adapter = findAdapter('odd');
    forget();
    if (adapter === undefined) throw new Error('it was not registered');
    const translation = open('chat', adapter);
    const { note, written } = translation.event({ name: undefined, data: '{"oops":"Too hot.","retry":true}' });
    expect(note.error).to.deep.equal({ body: { oops: 'Too hot.', retry: true } });
    expect(written.map(({ data }) => data).join('')).to.include('Too hot.');
  });
});

const ADAPTERS = { messages, chat, responses, gemini: withOwnDialect(gemini), converse: withOwnDialect(converse) };
type Upstream = keyof typeof ADAPTERS;
const CLIENTS = ['messages', 'chat', 'responses'] as const;

function open(protocol: Protocol, adapter: Candidate['adapter'], dialect?: 'chat' | 'messages' | 'responses') {
  const model = sampleModel('m');
  const upstream = sampleUpstream('up-1', [model], { adapters: [adapter] });
  const spoken = adapter.own === undefined ? dialect : 'own';
  const candidate: Candidate = {
    upstream,
    model,
    adapter,
    rough: roughPrice(model.price),
    ...(spoken !== undefined && { dialect: spoken }),
  };
  const asked = callOf({ instructions: [], turns: [], tools: [], choices: 1, stream: true, stop: [] }, {});
  return new Translation(candidate, { requestId: 'req', protocol, asked, request: {} });
}

/** The translation of an upstream's answer for a client; of its own protocol where both are the same. */
function between(upstream: Upstream, client: Protocol): Translation {
  const isOwn = upstream === 'gemini' || upstream === 'converse' || upstream === client;
  return open(client, ADAPTERS[upstream], isOwn ? undefined : upstream);
}

const event = (data: object | string, name?: string): SseEvent => ({
  name,
  data: typeof data === 'string' ? data : JSON.stringify(data),
});
const chunk = (delta: object, finish_reason: string | null = null, more = {}) =>
  event({ id: 'c', choices: [{ index: 0, delta, finish_reason }], ...more });
const COUNTS = event({ id: 'c', choices: [], usage: { prompt_tokens: 9, completion_tokens: 4 } });
const DONE = event('[DONE]');
const typed = (data: { readonly type: string; readonly [member: string]: unknown }) => event(data, data.type);

/** Returns all that a client is given of a stream, and whether it ended as an error. */
function relayed(translation: Translation, events: readonly SseEvent[]) {
  const written: string[] = [];
  let error = false;
  for (const each of events) {
    const translated = translation.event(each);
    written.push(...translated.written.map(({ data }) => data));
    error ||= translated.note.error !== undefined;
    if (error) break;
  }
  if (!error) written.push(...translation.end().map(({ data }) => data));
  return { text: written.join('\n'), error };
}

const END = /\[DONE\]|message_stop|response\.completed/;

describe('content that follows the stop reason in a translated answer', () => {
  for (const client of CLIENTS) {
    if (client === 'chat') continue;
    it(`reaches clients of ${client} if the content arrives before the usage report`, () => {
      const events = [chunk({ content: 'One' }), chunk({}, 'stop'), chunk({ content: ' two' }), COUNTS, DONE];
      const { text, error } = relayed(between('chat', client), events);
      expect(error).to.equal(false);
      expect(text).to.include(' two').and.match(END);
    });

    it(`ends the stream of clients of ${client} with an error if the content arrives after the usage report`, () => {
      const events = [chunk({ content: 'One' }), chunk({}, 'stop'), COUNTS, chunk({ content: ' two' }), DONE];
      const { text, error } = relayed(between('chat', client), events);
      expect(error).to.equal(true);
      expect(text).to.include('content after the end').and.not.match(END);
    });
  }

  it('reaches clients of Chat before the chunk with the stop reason', () => {
    const blocks = (index: number, text: string) => [
      typed({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } }),
      typed({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } }),
      typed({ type: 'content_block_stop', index }),
    ];
    const begin = typed({ type: 'message_start', message: { id: 'm', usage: { input_tokens: 9 } } });
    const stop = (usage = {}) => typed({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, ...usage });
    const last = typed({ type: 'message_stop' });
    const before = [begin, ...blocks(0, 'One'), stop(), ...blocks(1, ' two'), last];
    const { text, error } = relayed(between('messages', 'chat'), before);
    expect(error).to.equal(false);
    expect(text.indexOf(' two')).to.be.greaterThan(0).and.lessThan(text.indexOf('"finish_reason":"stop"'));
    const behind = [begin, ...blocks(0, 'One'), stop({ usage: { output_tokens: 4 } }), ...blocks(1, ' two'), last];
    expect(relayed(between('messages', 'chat'), behind).error).to.equal(true);
  });
});

/** Streams that end with a word that is no good end, with and without content. */
const ENDS: readonly (readonly [Upstream, string, (content: boolean, word: string) => readonly SseEvent[]])[] = [
  [
    'chat',
    'odd_reason',
    (content, word) => [...(content ? [chunk({ content: 'Hi' })] : []), chunk({}, word), COUNTS, DONE],
  ],
  [
    'gemini',
    'ODD_REASON',
    (content, word) => [
      event({
        candidates: [{ content: { parts: content ? [{ text: 'Hi' }] : [] }, finishReason: word }],
        usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 4 },
      }),
    ],
  ],
  [
    'converse',
    'odd_reason',
    (content, word) => [
      ...(content ? [event({ contentBlockIndex: 0, delta: { text: 'Hi' } }, 'contentBlockDelta')] : []),
      event({ stopReason: word }, 'messageStop'),
      event({ usage: { inputTokens: 9, outputTokens: 4 } }, 'metadata'),
    ],
  ],
];

describe('an unknown stop reason', () => {
  for (const [upstream, word, events] of ENDS)
    for (const client of CLIENTS) {
      if (upstream === client) continue;
      it(`of ${upstream} is an error for clients of ${client} if the answer has no content, and a normal end otherwise`, () => {
        expect(relayed(between(upstream, client), events(false, word)).error).to.equal(true);
        const { text, error } = relayed(between(upstream, client), events(true, word));
        expect(error).to.equal(false);
        expect(text).to.match(END);
      });
    }

  for (const [upstream, word] of [
    ['gemini', 'MALFORMED_FUNCTION_CALL'],
    ['gemini', 'UNEXPECTED_TOOL_CALL'],
    ['converse', 'malformed_tool_use'],
    ['chat', 'network_error'],
  ] as const)
    it(`differs from the known stop reason of an incomplete answer, which is always an error: ${word} of ${upstream}`, () => {
      const [, , events] = ENDS.find(([each]) => each === upstream) ?? expect.fail('no such row');
      const { text, error } = relayed(between(upstream, 'messages'), events(true, word));
      expect(error).to.equal(true);
      expect(text).to.include(word).and.not.match(END);
    });
});

describe('an error that says that a call is too long', () => {
  for (const [message, shown] of [
    ['prompt is too long: 213462 tokens > 200000 maximum', '213462 tokens > 200000 maximum'],
    ["This model's maximum context length is 8191 tokens, however you requested 10346 tokens", '10346 tokens > 8191'],
    [
      'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
      '1196265 tokens > 1048575',
    ],
    ["This model's maximum prompt length is 131072 but the request contains 537812 tokens.", '537812 tokens > 131072'],
    [
      "This endpoint's maximum context length is 1048576 tokens. However, you requested about 1293741 tokens (1227853 of text)",
      '1293741 tokens > 1048576',
    ],
    [
      'Prompt contains 150000 tokens and 0 draft tokens, too large for model with 131072 maximum context length',
      '150000 tokens > 131072',
    ],
    ['Your request exceeded model token limit: 128000', 'Your request exceeded'],
    ['Input is too long for requested model.', 'Input is too long'],
  ] as const)
    it(`reaches every client in the form of its protocol: ${message.slice(0, 40)}`, () => {
      const body = { error: { message } };
      const told = (client: Protocol) => between('gemini', client).error(body, 413);
      const { status, body: inMessages } = told('messages');
      expect(status).to.equal(400);
      expect(inMessages).to.have.nested.property('error.type', 'invalid_request_error');
      expect(JSON.stringify(inMessages)).to.include(`prompt is too long: `).and.include(shown);
      for (const client of ['chat', 'responses'] as const)
        expect(told(client).body).to.nested.include({
          'error.code': 'context_length_exceeded',
          'error.type': 'invalid_request_error',
          'error.message': message,
        });
    });

  it('reaches clients of a stream with the same text', () => {
    const failed = event({ error: { code: 'context_length_exceeded', message: 'Too long.' } });
    expect(relayed(between('chat', 'messages'), [failed]).text).to.include('"prompt is too long: Too long."');
    expect(relayed(between('chat', 'responses'), [failed]).text).to.include('"code":"context_length_exceeded"');
  });
});

const BODIES = {
  messages: {
    type: 'message',
    id: 'msg_9',
    content: [
      { type: 'text', text: 'Hello' },
      { type: 'tool_use', id: 'call_1', name: 'weather', input: { city: 'Lodz' } },
    ],
    stop_reason: 'tool_use',
    usage: { input_tokens: 9, output_tokens: 4 },
  },
  chat: {
    id: 'chatcmpl-9',
    choices: [
      {
        index: 0,
        message: {
          content: 'Hello',
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Lodz"}' } }],
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 9, completion_tokens: 4 },
  },
  responses: {
    id: 'resp_9',
    status: 'completed',
    output: [
      { type: 'message', content: [{ type: 'output_text', text: 'Hello', annotations: [] }] },
      { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"city":"Lodz"}' },
    ],
    usage: { input_tokens: 9, output_tokens: 4 },
  },
} as const;

describe('an answer whose form (stream or single body) is not the requested form', () => {
  for (const upstream of CLIENTS)
    for (const client of CLIENTS) {
      it(`of ${upstream} becomes a stream of ${client}, which can be converted back to the same body`, () => {
        const { note, written } = between(upstream, client).streamed(BODIES[upstream]);
        expect(countsIn(note.usage ?? expect.fail('no usage'))).to.deep.equal({ input: 9, output: 4 });
        expect(note).to.include({ content: true, done: true, finish: true });
        const streamed = written.map(({ name, data }) => ({ name, data }));
        expect(streamed.map(({ data }) => data).join('\n')).to.match(END);
        const whole = between(client, client).gathered(streamed);
        expect(countsIn(whole.usage)).to.include({ input: 9, output: 4 });
        const events = clientDialect(client)
          .openReader()
          .body(JSON.parse(JSON.stringify(whole.written)));
        expect(events.flatMap((each) => (each.kind === 'add' ? [each.text] : []))).to.deep.equal([
          'Hello',
          '{"city":"Lodz"}',
        ]);
        if (upstream === client) expect(whole.written['id']).to.equal(BODIES[client].id);
      });
    }

  for (const client of CLIENTS)
    it(`is rejected for ${client} if the answer is empty or its stream is incomplete`, () => {
      const isEmpty = () => {
        try {
          return between(client, client).streamed({ ok: true }).note.error !== undefined;
        } catch {
          return true;
        }
      };
      expect(isEmpty() || client === 'responses').to.equal(true);
      const { written } = between(client, client).streamed(BODIES[client]);
      const cut = written.slice(0, 3).map(({ name, data }) => ({ name, data }));
      expect(() => between(client, client).gathered(cut)).to.throw('not whole');
    });
});
