import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { chatAnswer, messagesAnswer, messagesFailure, type TestUpstream, when } from '../support/upstream';

describe('With `onInsufficient: clamp` and too little money, the gateway', () => {
  const first = useUpstream();
  const second = useUpstream();

  const gateway = useGateway(() => ({
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
  }));
  beforeEach(() => {
    first.reset();
    second.reset();
  });

  const usd = (e8: number) => (e8 / 1e8).toFixed(8);
  const limits = ({ calls }: TestUpstream, member = 'max_tokens') =>
    calls.map(({ json }) => (json as Record<string, unknown>)[member]);
  /** The price of an output token, at 15 USD per million. */
  const TOKEN_E8 = 1_500;

  const asking = (more: Record<string, unknown> = {}) => ask({ max_tokens: 4_000, ...more });
  const LEAST = 1_024;

  /** Returns the hold for the input of a call. */
  async function inputE8(path: string, body: Record<string, unknown>, tokens = LEAST): Promise<number> {
    const { key } = await gateway.newCustomer('0');
    const { status, json } = await gateway.call(path, { key, body });
    expect([status, json.error.code]).to.deep.equal([402, 'INSUFFICIENT_BALANCE']);
    return Math.round(Number(json.error.details.requiredUsd) * 1e8) - tokens * TOKEN_E8;
  }
  const nothingHeld = (key: string) =>
    until('it is settled', async () => (await gateway.balance(key)).heldUsd === '0.00000000');

  it('holds half of the balance, and sends every upstream the output limit that this amount covers', async () => {
    const fundsE8 = 2 * ((await inputE8('/v1/messages', asking())) + 2_000 * TOKEN_E8 + 400);
    const { key } = await gateway.newCustomer(usd(fundsE8));
    first.always(messagesFailure(529));
    second.always(messagesAnswer({ usage: { input: 100_000, output: 2_000 } }));
    const answer = await gateway.call('/quality/v1/messages', { key, body: asking() });
    expect(answer.status).to.equal(200);
    expect(limits(first)[0]).to.equal(2_000);
    expect(limits(second)).to.deep.equal([2_000]);
    await nothingHeld(key);
    // The upstream reports far more, but only the hold is charged.
    expect((await gateway.balance(key)).balanceUsd).to.equal(usd(fundsE8 / 2));
  });

  it("sends the call's own output limit if half of the balance covers it", async () => {
    const input = await inputE8('/v1/messages', asking());
    for (const upstream of [first, second]) upstream.always(messagesAnswer());
    const { key } = await gateway.newCustomer(usd(2 * (input + 4_000 * TOKEN_E8)));
    expect((await gateway.call('/v1/messages', { key, body: asking() })).status).to.equal(200);
    expect([...limits(first), ...limits(second)]).to.deep.equal([4_000]);
  });

  it("lowers the output limit to what half of the API key's own limit covers, too", async () => {
    const body = { ...asking(), max_tokens: undefined, max_completion_tokens: 4_000 };
    const input = await inputE8(PATH.chat, body);
    const { key } = await gateway.newCustomer('10', { balanceLimit: usd(2 * (input + 1_500 * TOKEN_E8)) });
    for (const upstream of [first, second]) upstream.always(chatAnswer());
    expect((await gateway.call(PATH.chat, { key, body })).status).to.equal(200);
    const [asked] = [...first.calls, ...second.calls];
    expect(asked?.json).to.include({ model: MODEL, max_completion_tokens: 1_500 }).and.not.have.property('max_tokens');
  });

  it("answers if the money covers the input and 1,024 tokens of output, or the call's smaller output limit", async () => {
    const [large, small] = [asking(), asking({ max_tokens: 200 })];
    for (const [body, tokens] of [
      [large, LEAST],
      [small, 200],
    ] as const) {
      const minE8 = (await inputE8('/v1/messages', body, tokens)) + tokens * TOKEN_E8;
      const [{ key }, poor] = [await gateway.newCustomer(usd(minE8)), await gateway.newCustomer(usd(minE8 - 1))];
      for (const upstream of [first, second]) upstream.reset();
      for (const upstream of [first, second]) upstream.always(messagesAnswer());
      const refused = await gateway.call('/v1/messages', { key: poor.key, body });
      expect([refused.status, refused.json.error.code]).to.deep.equal([402, 'INSUFFICIENT_BALANCE']);
      expect([...first.calls, ...second.calls]).to.have.length(0);
      expect((await gateway.call('/v1/messages', { key, body })).status).to.equal(200);
      expect([...limits(first), ...limits(second)]).to.deep.equal([tokens]);
    }
  });

  it('leaves money for simultaneous calls of the same account', async () => {
    const minE8 = (await inputE8('/v1/messages', asking())) + LEAST * TOKEN_E8;
    const { key } = await gateway.newCustomer(usd(4 * minE8));
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    for (const upstream of [first, second]) upstream.always(when(released, messagesAnswer()));
    const answers = [1, 2, 3].map(() => gateway.call('/v1/messages', { key, body: asking() }));
    await until('all are asked', () => first.calls.length + second.calls.length === 3);
    release();
    expect((await Promise.all(answers)).map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    const [least = 0, next = 0] = [...limits(first), ...limits(second)].map(Number).sort((a, b) => a - b);
    expect([least, next < 4_000]).to.deep.equal([LEAST, true]);
    await nothingHeld(key);
  });
});
