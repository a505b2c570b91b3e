import { expect } from 'chai';
import OpenAI from 'openai';
import { type AwsKeys, wrongSignature } from '../support/aws-signature';
import { askIn, PATH, PROTOCOLS } from '../support/calls';
import { DIALECT } from '../support/dialects';
import { eventStreamMessage, exceptionMessage } from '../support/event-stream';
import { useGateway, useUpstream } from '../support/story';
import { geminiAnswer, geminiStream, respond, type Script } from '../support/upstream';

const REGION = 'us-east-1';
const KEYS: AwsKeys = { id: 'AKIDEXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const MODEL = 'amazon.nova-pro-v1:0';
const FRAMED = { 'content-type': 'application/vnd.amazon.eventstream', 'x-amzn-requestid': 'amazon-id' };
const USAGE = { inputTokens: 120, cacheReadInputTokens: 80, outputTokens: 30, totalTokens: 230 };
const COST = '0.00083400';

function converse(content: readonly object[], stopReason = 'end_turn'): Script {
  return respond({ body: { output: { message: { role: 'assistant', content } }, stopReason, usage: USAGE } });
}

type Event = readonly [name: string, data: object];

function streamed(...events: readonly (Event | Buffer)[]): Script {
  const messages = events.map((event) =>
    Buffer.isBuffer(event)
      ? event
      : eventStreamMessage(
          { ':event-type': event[0], ':content-type': 'application/json', ':message-type': 'event' },
          JSON.stringify(event[1]),
        ),
  );
  return respond({ headers: FRAMED, body: Buffer.concat(messages) });
}

const delta = (contentBlockIndex: number, said: object): Event => [
  'contentBlockDelta',
  { contentBlockIndex, delta: said, p: 'abcd' },
];
const stop = (contentBlockIndex: number): Event => ['contentBlockStop', { contentBlockIndex }];
const end = (stopReason: string): readonly Event[] => [
  ['messageStop', { stopReason }],
  ['metadata', { usage: USAGE, metrics: { latencyMs: 7 } }],
];

describe("With an adapter for Amazon Bedrock's Converse or for Vertex AI,", () => {
  const upstream = useUpstream();
  let key: string;
  let openai: OpenAI;

  const gateway = useGateway(() => ({
    upstreams: {
      converse: {
        url: upstream.url,
        adapter: 'bedrock-converse',
        adapterSettings: { region: REGION },
        credential: { env: 'AMAZON_KEYS' },
        models: { [MODEL]: { aliases: ['nova'] } },
      },
      google: {
        url: upstream.url,
        adapter: 'vertex-gemini',
        adapterSettings: { project: 'acme-1', region: 'global' },
        credential: { env: 'GOOGLE_TOKEN' },
        models: { 'gemini-9': {} },
      },
    },
    env: { AMAZON_KEYS: `${KEYS.id}:${KEYS.secret}`, GOOGLE_TOKEN: 'ya29.token' },
  }));

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
    openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());

  for (const protocol of PROTOCOLS) {
    it(`Converse answers a signed ${protocol} call, and the client pays exactly the price of its usage`, async () => {
      upstream.next(converse([{ text: 'Grüß Gott' }]));
      const answer = await gateway.call(PATH[protocol], { key, body: askIn(protocol, { model: 'nova' }) });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.text).to.include('Grüß Gott');
      expect(answer.headers).to.include({ 'x-ai-cost': COST, 'x-routing-translated': 'true' });
      const [call] = upstream.calls;
      if (call === undefined) throw new Error('nobody was asked');
      expect(call.path).to.equal(`/model/${encodeURIComponent(MODEL)}/converse`);
      expect(wrongSignature(call, KEYS, REGION)).to.equal(undefined);
      expect(call.json).to.deep.equal({
        messages: [{ role: 'user', content: [{ text: 'Hello' }] }],
        inferenceConfig: { maxTokens: 200 },
      });
    });

    it(`Converse streams to a ${protocol} client, and the client pays exactly the price of its usage`, async () => {
      upstream.next(
        streamed(
          ['messageStart', { role: 'assistant' }],
          delta(0, { text: 'Grüß ' }),
          delta(0, { text: 'Gott' }),
          stop(0),
          ...end('end_turn'),
        ),
      );
      const answer = await gateway.call(PATH[protocol], {
        key,
        body: askIn(protocol, { model: 'nova', stream: true }),
      });
      expect(DIALECT[protocol].textOf(answer.text)).to.equal('Grüß Gott');
      expect(answer.text).to.match(DIALECT[protocol].end).and.to.include(`"cost":${COST}`);
      expect(upstream.calls[0]?.path).to.equal(`/model/${encodeURIComponent(MODEL)}/converse-stream`);
      const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
      expect(record).to.deep.include({ billing: 'actual', cost: COST, flags: ['translated'] });
    });

    it(`Vertex AI's Gemini answers a ${protocol} call, streamed and unstreamed`, async () => {
      const said = { text: 'Hi', usage: { input: 120, cacheRead: 80, output: 30 } };
      upstream.next(geminiAnswer(said), geminiStream(said));
      for (const stream of [false, true]) {
        const answer = await gateway.call(PATH[protocol], {
          key,
          body: askIn(protocol, { model: 'gemini-9', stream }),
        });
        expect(answer.status, answer.text).to.equal(200);
        const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
        expect(record).to.include({ billing: 'actual', cost: COST });
      }
      const place = '/v1/projects/acme-1/locations/global/publishers/google/models/gemini-9';
      expect(upstream.calls.map(({ path }) => path)).to.deep.equal([
        `${place}:generateContent`,
        `${place}:streamGenerateContent?alt=sse`,
      ]);
      expect(upstream.calls[0]?.headers['authorization']).to.equal('Bearer ya29.token');
    });
  }

  it('Converse returns structured output and accepts an image and a document', async () => {
    upstream.next(converse([{ text: '{"city":"Oslo"}' }]));
    const format = { name: 'place', schema: { type: 'object', properties: { city: { type: 'string' } } } };
    const completion = await openai.chat.completions.create({
      model: 'nova',
      response_format: { type: 'json_schema', json_schema: format },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Where is it?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
            { type: 'file', file: { filename: 'map: old.pdf', file_data: 'data:application/pdf;base64,BBBB' } },
          ],
        },
      ],
    });
    expect(completion.choices[0]?.message.content).to.equal('{"city":"Oslo"}');
    const { messages, outputConfig } = (await upstream.call(1)).json as Record<string, unknown>;
    expect(outputConfig).to.deep.equal({
      textFormat: {
        type: 'json_schema',
        structure: { jsonSchema: { name: 'place', schema: JSON.stringify(format.schema) } },
      },
    });
    expect(messages).to.deep.equal([
      {
        role: 'user',
        content: [
          { text: 'Where is it?' },
          { image: { format: 'png', source: { bytes: 'AAAA' } } },
          { document: { format: 'pdf', name: 'map- old-pdf', source: { bytes: 'BBBB' } } },
        ],
      },
    ]);
  });

  it("an error in a stream of Converse becomes the protocol's error event, and the client pays nothing", async () => {
    upstream.next(streamed(delta(0, { text: 'Hi' }), exceptionMessage('throttlingException', 'Too many.')));
    const broken = await gateway.call(PATH.messages, { key, body: askIn('messages', { model: 'nova', stream: true }) });
    expect(broken.text).to.match(/event: error\n.*Too many\./);
    const record = await gateway.record(key, broken.headers['x-svc-request-id'] ?? '');
    expect(record).to.include({ billing: 'released', cost: '0.00000000' });
  });

  it('an error answer of Converse reaches the client with its status and message', async () => {
    upstream.next(respond({ status: 400, body: { message: 'The model is not there.' } }));
    const refused = await gateway.call(PATH.chat, { key, body: askIn('chat', { model: 'nova' }) });
    expect([refused.status, refused.json.error.message]).to.deep.equal([400, 'The model is not there.']);
  });

  for (const [what, more] of [
    ['temperature', { temperature: 1.5 }],
    ['n', { n: 2 }],
    ['parallel_tool_calls', { parallel_tool_calls: false, tools: [{ type: 'function', function: { name: 'a' } }] }],
  ] as const)
    it(`a call with ${what}, which Converse does not support, is refused before any upstream is called`, async () => {
      const refused = await gateway.call(PATH.chat, { key, body: askIn('chat', { model: 'nova', ...more }) });
      expect([refused.status, refused.json.error.code, refused.json.error.param]).to.deep.equal([
        400,
        'NOT_TRANSLATABLE',
        what,
      ]);
      expect(upstream.calls).to.have.length(0);
    });
});
