import { expect } from 'chai';
import { responsesBody } from '../../demo/dialects/responses';
import { askIn, PATH } from '../support/calls';
import { MODEL } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { answerOf } from '../support/scripts/answer';
import { useGateway, useUpstream } from '../support/story';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { neverAnswer, respond, responsesAnswer, responsesStream, type Script } from '../support/upstream';

const reference = (id: string) => ({ type: 'item_reference', id });

describe('Items of earlier answers in a Responses call', () => {
  const acme = useUpstream();
  const other = useUpstream();
  let made = 0;

  const gateway = useGateway(() => {
    const model = { context: 200_000, tokenizerFactor: 1 };
    return {
      upstreams: {
        acme: { url: acme.url, models: { [MODEL]: model, 'acme-only': model }, timeouts: { headers: '500ms' } },
        other: { url: other.url, tier: 'official', models: { [MODEL]: model } },
      },
      configure: (config) => setPolicy(config, 'model-request', { sharedObjects: ['item'] }, 'speed'),
    };
  });
  beforeEach(rest);

  function rest(): void {
    for (const each of [acme, other]) {
      each.reset();
      each.always(responsesAnswer({ id: 'resp_next' }));
    }
  }

  const call = (key: string, more: Record<string, unknown>, path: string = PATH.responses) =>
    gateway.call(path, { key, body: { ...askIn('responses'), store: undefined, ...more } });
  const naming = (key: string, ids: readonly string[], more: Record<string, unknown> = {}, path?: string) =>
    call(key, { input: [{ role: 'user', content: 'Hello' }, ...ids.map(reference)], ...more }, path);
  const asked = () => acme.calls.length + other.calls.length;
  const refusal = async (...what: Parameters<typeof naming>) => {
    const { status, json } = await naming(...what);
    return [status, json.error?.code, json.error?.param];
  };
  const NOT_FOUND = [404, 'KEPT_OBJECT_NOT_FOUND', 'input[1]'];

  /** Makes an answer that `acme` keeps, and returns the ids of its message and its tool call. */
  async function newItems(key: string, more: { readonly stream?: boolean; readonly output?: number } = {}) {
    made += 1;
    const [id, callId] = [`resp_${made}`, `call_${made}`];
    const toolCalls = [{ id: callId, name: 'get_weather', input: { city: 'Bern' } }];
    const said = { id, texts: ['I will ', 'look.'], toolCalls, usage: { input: 40_000, output: more.output ?? 50 } };
    acme.next(more.stream === true ? responsesStream(said) : responsesAnswer(said));
    const answer = await call(key, { model: 'acme-only', stream: more.stream ?? false });
    expect(answer.status, answer.text).to.equal(200);
    rest();
    return [`msg_${id}`, `fc_${callId}`] as const;
  }

  const customer = async (usd = '10') => (await gateway.newCustomer(usd)).key;

  /** Returns the hold of a call that `acme` does not answer. */
  async function heldFor(key: string, ids: readonly string[]): Promise<number> {
    rest();
    acme.next(neverAnswer());
    const pending = naming(key, ids, { max_output_tokens: 1, model: 'acme-only' });
    await acme.call(1);
    const { heldUsd } = await gateway.balance(key);
    await pending;
    await until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
    return Number(heldUsd);
  }

  for (const stream of [false, true]) {
    it(`make the call go to the upstream that has them (earlier answer ${stream ? 'streamed' : 'in one piece'})`, async () => {
      const key = await customer();
      const ids = await newItems(key, { stream });
      const answer = await naming(key, ids);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers['x-routing-provider']).to.equal('acme');
      expect(acme.calls[0]?.json).to.have.property('input').that.deep.includes.members(ids.map(reference));
      expect(other.calls).to.have.length(0);
    });
  }

  it("of another account get 404, even beside items of the caller's account, and the error names the foreign item", async () => {
    const key = await customer();
    const [mine] = await newItems(key);
    const [foreign] = await newItems(await customer());
    expect(await refusal(key, [mine, foreign])).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'input[2]']);
    expect(asked()).to.equal(0);
  });

  it('stay with their account if an answer to another account has the same ids', async () => {
    const [owner, thief] = [await customer(), await customer()];
    const ids = await newItems(owner);
    const callId = ids[1].slice('fc_'.length);
    acme.next(
      responsesAnswer({
        id: 'resp_of_thief',
        text: 'Hello.',
        toolCalls: [{ id: callId, name: 'get_weather', input: {} }],
      }),
    );
    expect((await call(thief, { model: 'acme-only' })).status).to.equal(200);
    expect((await naming(thief, ['msg_resp_of_thief'])).status).to.equal(200);
    expect(await refusal(thief, [ids[1]])).to.deep.equal(NOT_FOUND);
    expect((await naming(owner, ids)).status).to.equal(200);
  });

  it('are recorded from an answer that is too large to parse', async () => {
    const key = await customer();
    acme.next(responsesAnswer({ id: 'resp_long', text: 'x'.repeat(1_100_000) }));
    expect((await call(key, { model: 'acme-only' })).status).to.equal(200);
    expect((await naming(key, ['msg_resp_long'])).status).to.equal(200);
  });

  it('get 400 if two of them are kept at different upstreams', async () => {
    const key = await customer();
    const [atAcme] = await newItems(key);
    other.next(responsesAnswer({ id: 'resp_at_other' }));
    expect((await call(key, {})).headers['x-routing-provider']).to.equal('other');
    rest();
    const { status, json } = await naming(key, [atAcme, 'msg_resp_at_other']);
    expect([status, json.error.code, json.error.param]).to.deep.equal([400, 'INVALID_FIELD', 'input[2]']);
    expect(json.error.message).to.equal('input[2]: names an object at another upstream than input[1]');
    const mixed = await naming(key, [atAcme], { previous_response_id: 'resp_at_other' });
    expect([mixed.status, mixed.json.error.param]).to.deep.equal([400, 'input[1]']);
    expect(asked()).to.equal(0);
  });

  it('make the hold count the output tokens of each earlier answer once, but not its input tokens', async () => {
    const key = await customer();
    const first = await newItems(key, { output: 1_000 });
    const second = await newItems(key, { output: 2_000 });
    const small = await newItems(key, { output: 1 });
    // Calls that name content outside their body hold at the highest input price: 6 USD per million.
    const none = await heldFor(key, small);
    const one = await heldFor(key, first);
    expect(one - none).to.be.closeTo(999 * 6e-6, 1e-4);
    const both = await heldFor(key, [...first, ...second]);
    expect(both - one).to.be.within(2_000 * 6e-6, 2_000 * 6e-6 + 1e-3);
  });

  const search = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search' } };
  const searched = responsesBody(answerOf({ id: 'resp_searched' }, 'resp'));
  const unbounded: readonly [title: string, id: string, script: Script][] = [
    ['did not report its tokens', 'msg_resp_unknown', responsesAnswer({ id: 'resp_unknown', rawUsage: null })],
    [
      'contains the result of a tool of the vendor',
      'msg_resp_searched',
      respond({ body: { ...searched, output: [search, ...(searched['output'] as unknown[])] } }),
    ],
  ];
  for (const [title, id, script] of unbounded) {
    it(`make the hold cover a context window if their answer ${title}`, async () => {
      const key = await customer();
      acme.next(script);
      expect((await call(key, { model: 'acme-only' })).status).to.equal(200);
      const held = await heldFor(key, [id]);
      expect(held).to.be.within(200_000 * 6e-6, 200_000 * 6e-6 + 1e-3);
    });
  }

  it('get 400 in a form that upstreams could read differently, or if named twice', async () => {
    const key = await customer();
    const [mine] = await newItems(key);
    const [foreign] = await newItems(await customer());
    for (const text of [
      `{"type":"item_reference","id":"${mine}","id":"${foreign}"}`,
      `{"type":"item_reference","id":"${mine}","ID":"${foreign}"}`,
      `{"type":"item_reference","id":"${mine}","item_id":"${foreign}"}`,
      `{"type":"item_reference","id":["${mine}"]}`,
      '{"type":"item_reference"}',
      `{"type":"item_reference","id":"${mine}","note":"${'x'.repeat(3_000)}"}`,
      `{"id":"${mine}","call_id":"x"}`,
    ]) {
      const body = `{"model":"${MODEL}","input":[${text}]}`;
      const { status, json } = await gateway.call(PATH.responses, { key, body });
      expect([status, json.error?.code, json.error?.param], text).to.deep.equal([400, 'NOT_SUPPORTED', 'input[0]']);
    }
    expect(await refusal(key, [mine, mine])).to.deep.equal([400, 'INVALID_FIELD', 'input[2]']);
    const inside = [{ type: 'message', role: 'user', content: [reference(mine)] }];
    expect((await call(key, { input: inside })).status, 'inside of an item').to.equal(400);
    expect(asked()).to.equal(0);
    const escaped = `{"model":"${MODEL}","input":[{"type":"item_reference","\\u0069d":"${mine}"}]}`;
    expect((await gateway.call(PATH.responses, { key, body: escaped })).status, 'an escaped key').to.equal(200);
  });

  it('can be used by every account if `sharedObjects` allows it, and make the hold cover a context window', async () => {
    const key = await customer();
    expect((await naming(key, ['msg_of_the_operator'], {}, '/speed/v1/responses')).status).to.equal(200);
    const poor = await customer('1');
    const { status, json } = await naming(poor, ['msg_of_the_operator'], {}, '/speed/v1/responses');
    expect([status, json.error.code]).to.deep.equal([402, 'INSUFFICIENT_BALANCE']);
    expect(await refusal(key, ['msg_of_the_operator'])).to.deep.equal(NOT_FOUND);
  });

  it('may be used over a WebSocket as over HTTP', async () => {
    const key = await customer();
    const socket = await TestSocket.open(gateway, key);
    try {
      acme.next(responsesStream({ id: 'resp_socket' }));
      await socket.call({ model: 'acme-only', store: true });
      acme.next(responsesStream());
      const events = await socket.call({ store: true, input: [reference('msg_resp_socket')] });
      expect(events.at(-1).type).to.equal('response.completed');
      expect(acme.calls.at(-1)?.json)
        .to.have.property('input')
        .that.deep.equals([reference('msg_resp_socket')]);
      const refused = await socket.refusal(TestSocket.create({ store: true, input: [reference('msg_unknown')] }));
      expect([refused.status, refused.error.code]).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND']);
      expect(other.calls).to.have.length(0);
    } finally {
      socket.close();
      await socket.closed;
    }
  });
});
