import { expect } from 'chai';
import { ask } from '../support/calls';
import { MODEL } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, messagesStream, when } from '../support/upstream';

/** The answer to a call that only fills the vendor's cache. It costs 1,000 × 3.75 USD per million written and 10 × 3 read. */
const FILLED = { texts: [], stop: 'length', usage: { input: 10, cacheWrite: 1_000, output: 0 } } as const;
const COST = '0.00378000';

/** The model's tokenizer factor. It is large, so that the hold of a short body covers that usage. */
const FACTOR = 150;

describe('A Messages call with `max_tokens: 0`', () => {
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url, models: { [MODEL]: { tokenizerFactor: FACTOR } } } },
    configure: (config) => setPolicy(config, 'reserve-settle', { onInsufficient: 'clamp' }, 'cost'),
  }));

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => upstream.reset());

  for (const stream of [false, true]) {
    it(`is charged for its input alone, ${stream ? 'as a stream' : 'in one piece'}`, async () => {
      upstream.next(stream ? messagesStream(FILLED) : messagesAnswer(FILLED));
      const body = JSON.stringify(ask({ max_tokens: 0, stream }));
      const answer = await gateway.call('/v1/messages', { key, body });
      expect(answer.status, answer.text).to.equal(200);
      expect(upstream.calls[0]?.body.toString()).to.equal(body);
      const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
      expect(record).to.include({ billing: 'actual', cost: COST, outputTokens: 0, cacheCreationTokens: 1_000 });
    });
  }

  it('holds money for its input alone', async () => {
    let release = (): void => undefined;
    upstream.next(when(new Promise<void>((done) => (release = done)), messagesAnswer(FILLED)));
    const body = JSON.stringify(ask({ max_tokens: 0, cache_control: { type: 'ephemeral', ttl: '1h' } }));
    const answered = gateway.call('/v1/messages', { key, body });
    await upstream.call(1);
    // The hold counts each byte at the highest price of input: 6 USD per million for the one-hour cache.
    const heldUsd = (Buffer.byteLength(body) * FACTOR * 6e-6).toFixed(8);
    await until('the input is held', async () => (await gateway.balance(key)).heldUsd === heldUsd);
    release();
    expect((await answered).status).to.equal(200);
  });

  it('gets 402 if the balance does not cover its input, although `onInsufficient` is `clamp`', async () => {
    const { key: poor } = await gateway.newCustomer('0.00000600');
    const answer = await gateway.call('/cost/v1/messages', { key: poor, body: ask({ max_tokens: 0 }) });
    expect(answer.status, answer.text).to.equal(402);
    expect(upstream.calls).to.have.length(0);
  });

  it('is accepted, while `max_tokens: -1`, and a Chat call with `max_tokens: 0`, get 400', async () => {
    const negative = await gateway.call('/v1/messages', { key, body: ask({ max_tokens: -1 }) });
    expect([negative.status, negative.json.error.param]).to.deep.equal([400, 'max_tokens']);
    const chat = await gateway.call('/v1/chat/completions', { key, body: ask({ max_tokens: 0 }) });
    expect([chat.status, chat.json.error.param]).to.deep.equal([400, 'max_tokens']);
  });
});
