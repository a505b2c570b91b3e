import { expect } from 'chai';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { DIALECT } from '../support/dialects';
import { DIRECTIONS, failureIn, streamIn, type UpstreamDialect } from '../support/directions';
import { useGateway, useUpstream } from '../support/story';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { responsesFailure, responsesStream } from '../support/upstream';

const USAGE = { input: 120, output: 30, cacheRead: 80 };
/** The cost of that usage: 120 × 3 + 80 × 0.3 + 30 × 15 USD per million. */
const COST = '0.00083400';

const WEATHER = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const TOOLS = [{ type: 'function' as const, name: 'weather', parameters: WEATHER, strict: false }];
const CALLED = { name: 'weather', input: { city: 'Łódź' }, id: 'call_weather' };

describe('A WebSocket with Responses calls to upstreams of another protocol', () => {
  const upstream = useUpstream();
  const native = useUpstream();
  let key: string;
  let socket: TestSocket;

  const ways = DIRECTIONS.filter(({ from }) => from === 'responses');

  const gateway = useGateway(() => {
    const only = ({ to, model }: (typeof ways)[number]) => ({
      url: upstream.url,
      adapter: to,
      models: { [model]: {} },
    });
    return {
      upstreams: {
        ...Object.fromEntries(ways.map((way) => [`only-${way.to}`, only(way)])),
        'first-responses': { url: native.url, adapter: 'responses', webSocket: true, models: { both: {} } },
        'second-chat': { url: upstream.url, adapter: 'chat', models: { both: {} } },
      },
    };
  });
  beforeEach(async () => {
    upstream.reset();
    native.reset();
    ({ key } = await gateway.newCustomer('10'));
    socket = await TestSocket.open(gateway, key);
  });
  afterEach(async () => {
    socket.close();
    await socket.closed;
  });

  const preambleOf = (to: UpstreamDialect) => (to === 'gemini' ? 0 : DIALECT[to].preamble);

  const records = (count: number) =>
    until('all records exist', async () => {
      const { items } = (await gateway.call('/v1/usage', { method: 'GET', key })).json;
      return items.length === count ? (items as Record<string, unknown>[]) : undefined;
    });

  for (const { to, model } of ways)
    describe(`(here ${to})`, () => {
      it('streams the answer, with its usage and its exact cost', async () => {
        upstream.next(streamIn(to, { texts: ['Hi ', 'there'], usage: USAGE }));
        const events = await socket.call({ model });
        const deltas = events.filter(({ type }) => type === 'response.output_text.delta');
        expect(deltas.map(({ delta }) => delta)).to.deep.equal(['Hi ', 'there']);
        expect(events.map(({ sequence_number: number }) => number)).to.deep.equal([...events.keys()]);
        const { response } = events.at(-1);
        expect(response.usage).to.deep.include({ input_tokens: 200, output_tokens: 30, cost: Number(COST) });
        const [record] = await records(1);
        expect(record).to.deep.include({ billing: 'actual', cost: COST, flags: ['translated'], stream: true });
      });

      it('returns a tool call to the official client, and accepts the result on the same socket', async () => {
        upstream.next(
          streamIn(to, { toolCalls: [CALLED], usage: USAGE }),
          streamIn(to, { text: 'Rain.', usage: USAGE }),
        );
        const client = new ResponsesWS(new OpenAI({ apiKey: key, baseURL: `${gateway.url}/v1` }));
        const answered = (input: OpenAI.Responses.ResponseInput) =>
          new Promise<OpenAI.Responses.Response>((resolve, reject) => {
            client.once('response.completed', ({ response }) => resolve(response));
            client.once('error', reject);
            client.send({ type: 'response.create', model, input, tools: TOOLS, store: false });
          });
        const asked: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Is it raining?' }];
        const { output } = await answered(asked);
        const call = output.find(({ type }) => type === 'function_call') as OpenAI.Responses.ResponseFunctionToolCall;
        expect([call.name, JSON.parse(call.arguments)]).to.deep.equal([CALLED.name, CALLED.input]);
        const result = { type: 'function_call_output' as const, call_id: call.call_id, output: 'yes' };
        const { output: last } = await answered([
          ...asked,
          ...(output as OpenAI.Responses.ResponseInputItem[]),
          result,
        ]);
        client.close();
        expect(last[0]).to.deep.include({ type: 'message', status: 'completed' });
        expect(JSON.stringify(upstream.calls[1]?.json)).to.include('yes').and.to.include('Łódź');
        expect((await records(2)).map(({ cost }) => cost)).to.deep.equal([COST, COST]);
      });

      it('answers 400 to a client that names an earlier answer, and the client then sends the whole conversation', async () => {
        upstream.next(streamIn(to, { text: 'Hi', usage: USAGE }));
        const [{ response }] = (await socket.call({ model })).slice(-1);
        const again = TestSocket.create({ model, previous_response_id: response.id });
        const refused = await socket.refusal(again);
        expect([refused.status, refused.error.code]).to.deep.equal([400, 'previous_response_not_found']);
        expect(upstream.calls).to.have.length(1);
      });

      it('ends a broken stream with `response.failed` and without a charge, and stays open', async () => {
        upstream.next(streamIn(to, { texts: ['Hi ', 'there'], cut: 'reset', cutAfter: preambleOf(to) + 1 }));
        const broken = await socket.call({ model });
        expect(broken.at(-1)).to.include({ type: 'response.failed' });
        upstream.next(streamIn(to, { text: 'Hi', usage: USAGE }));
        expect((await socket.call({ model })).at(-1)).to.include({ type: 'response.completed' });
        const billed = (await records(2)).map(({ billing, cost }) => [billing, cost]);
        expect(billed).to.have.deep.members([
          ['released', '0.00000000'],
          ['actual', COST],
        ]);
      });

      it("relays a vendor's refusal as an error event", async () => {
        upstream.next(failureIn(to, 400, 'No such thing.'));
        const refused = await socket.refusal(TestSocket.create({ model }));
        expect([refused.type, refused.status, refused.error.message]).to.deep.equal(['error', 400, 'No such thing.']);
      });
    });

  it('fails over to an upstream of another dialect, and calls the first upstream again for the next call', async () => {
    native.next(responsesFailure(503), responsesStream({ text: 'native' }));
    upstream.next(streamIn('chat', { text: 'translated', usage: USAGE }));
    const textOf = (events: readonly { readonly response?: { readonly output: unknown } }[]) =>
      JSON.stringify(events.at(-1)?.response?.output);
    expect(textOf(await socket.call({ model: 'both' }))).to.include('translated');
    expect(textOf(await socket.call({ model: 'both' }))).to.include('native');
    expect((await records(2)).map(({ upstream: name }) => name)).to.have.members(['first-responses', 'second-chat']);
  });
});
