import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { until } from '../support/until';
import { chatAnswer, messagesAnswer, messagesFailure, startUpstream, type TestUpstream } from '../support/upstream';

describe('With `onInsufficient: clamp` and too little money, the gateway', function () {
  this.timeout(60_000);
  let first: TestUpstream;
  let second: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    [first, second] = [await startUpstream(), await startUpstream()];
    gateway = await startGateway({
      upstreams: {
        first: { url: first.url, tier: 'official' },
        second: { url: second.url },
      },
      configure: (config) => {
        const set: Record<string, object> = {
          'reserve-settle': { onInsufficient: 'clamp' },
        };
        for (const { policies } of Object.values(config['pipelines'] as Record<string, { policies: object[] }>)) {
          for (const step of policies as Record<string, unknown>[]) {
            for (const [name, action] of Object.entries(set)) if (name in step) step[name] = [{ action }];
          }
        }
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await first?.stop();
    await second?.stop();
  });
  beforeEach(() => {
    first.reset();
    second.reset();
  });

  const usd = (e8: number) => (e8 / 1e8).toFixed(8);
  const limits = ({ calls }: TestUpstream, member = 'max_tokens') =>
    calls.map(({ json }) => (json as Record<string, unknown>)[member]);
  /** The price of an output token, at 15 USD per million. */
  const TOKEN_E8 = 1_500;

  /** Returns the hold for the input of a call. A balance of this much allows no output token. */
  async function inputE8(path: string, body: Record<string, unknown>): Promise<number> {
    const { key } = await gateway.newCustomer('0');
    const { status, json } = await gateway.call(path, { key, body });
    expect(status).to.equal(402);
    return Math.round(Number(json.error.details.requiredUsd) * 1e8) - 200 * TOKEN_E8;
  }

  it('sends every upstream the affordable limit, and the balance is never below zero', async () => {
    const input = await inputE8('/v1/messages', ask());
    const { key } = await gateway.newCustomer(usd(input + 7 * TOKEN_E8 + 400));
    first.always(messagesFailure(529));
    second.always(messagesAnswer({ usage: { input: 100_000, output: 7 } }));
    const answer = await gateway.call('/quality/v1/messages', { key, body: ask() });
    expect(answer.status).to.equal(200);
    expect(limits(first)[0]).to.equal(7);
    expect(limits(second)).to.deep.equal([7]);
    await until('it is settled', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
    // The upstream reports far more, but only the hold is charged.
    expect((await gateway.balance(key)).balanceUsd).to.equal('0.00000400');
  });

  it('lowers the limit to what the key may spend, as it does for the balance', async () => {
    const body = { ...ask(), max_tokens: undefined, max_completion_tokens: 200 };
    const input = await inputE8(PATH.chat, body);
    const { key } = await gateway.newCustomer('10', { balanceLimit: usd(input + 20 * TOKEN_E8) });
    for (const upstream of [first, second]) upstream.always(chatAnswer());
    expect((await gateway.call(PATH.chat, { key, body })).status).to.equal(200);
    const [asked] = [...first.calls, ...second.calls];
    expect(asked?.json).to.include({ model: MODEL, max_completion_tokens: 20 }).and.not.have.property('max_tokens');
  });

  it('answers 402 and asks no upstream if not one output token is affordable', async () => {
    const input = await inputE8('/v1/messages', ask());
    const { key } = await gateway.newCustomer(usd(input + TOKEN_E8 - 1));
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    expect(answer.status).to.equal(402);
    expect(answer.json.error.code).to.equal('INSUFFICIENT_BALANCE');
    expect([...first.calls, ...second.calls]).to.have.length(0);
  });
});
