import { expect } from 'chai';
import { askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { DIALECT, streamOf } from '../support/dialects';
import { startGateway, type TestGateway } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { readMetrics } from '../support/metrics';
import { until } from '../support/until';
import { messagesAnswer, messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

/** A model whose output costs 0.1 USD a second: 1,000 tokens a second at 100 USD per million. */
const FAST = { maxOutput: 128_000, tokenizerFactor: 1, price: { input: 1, output: 100 }, maxTokensPerSecond: 1_000 };
const USD_A_SECOND = 0.1;
/** The cost of five seconds in USD. The input of a small body costs less than a thousandth of it. */
const FIVE_SECONDS = 0.5;
const SLIGHTLY_MORE = 0.001;

const WORDS = Array.from({ length: 2_000 }, () => 'word ');

/** Scripts that send words until the gateway disconnects. */
const talks = {
  messages: streamOf('messages', { texts: WORDS, delayMs: 20 }),
  chat: streamOf('chat', { texts: WORDS, delayMs: 20 }),
  responses: streamOf('responses', { texts: WORDS, delayMs: 20 }),
} as const;

describe('The hold of a stream whose upstream has `stopsOnCancel: true`', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startUpstream();
    const { url } = upstream;
    gateway = await startGateway({
      upstreams: {
        stops: { url, stopsOnCancel: true, models: { fast: FAST, both: FAST } },
        unsaid: { url, models: { unsaid: FAST, both: FAST } },
        slow: { url, stopsOnCancel: true, models: { unknown: { ...FAST, maxTokensPerSecond: undefined } } },
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  const asked = (more: object = {}, protocol: TestProtocol = 'messages') =>
    askIn(protocol, { model: 'fast', max_tokens: 128_000, stream: true, ...more });
  const begin = (key: string, protocol: TestProtocol = 'messages', more: object = {}) =>
    new LeavingClient(gateway, PATH[protocol], key, asked(more, protocol));
  const held = async (key: string) => Number((await gateway.balance(key)).heldUsd);
  const idOf = (client: LeavingClient) => /request-id: (\S+)/i.exec(client.text)?.[1] ?? '';

  it('covers five seconds of output at first, and grows while the stream runs', async () => {
    upstream.always(talks.messages);
    const { key } = await gateway.newCustomer('10');
    const client = begin(key);
    await client.sees('word');
    expect(await held(key)).to.be.within(FIVE_SECONDS, FIVE_SECONDS + SLIGHTLY_MORE);
    await until('the hold has grown', async () => (await held(key)) > FIVE_SECONDS + 0.19);
    expect((await readMetrics(gateway)).get('tollgate_ledger_held_usd')).to.be.above(FIVE_SECONDS + 0.19);
    await until('the hold has grown again', async () => (await held(key)) > FIVE_SECONDS + 0.38);
    client.leave();
  });

  for (const protocol of PROTOCOLS) {
    it(`ends the stream with the error event once it cannot grow, and the used output is charged (${protocol})`, async () => {
      upstream.always(talks[protocol]);
      const { key } = await gateway.newCustomer('0.75');
      const client = begin(key, protocol);
      await client.sees('INSUFFICIENT_BALANCE');
      const call = await upstream.call(1);
      await call.clientGone;
      // At full speed, the vendor charged no more than was held until it was cancelled.
      expect(((Date.now() - call.at) / 1_000) * USD_A_SECOND).to.be.below(0.75);
      expect(client.text)
        .to.match(/^HTTP\/1\.1 200/)
        .and.not.match(DIALECT[protocol].end);
      const record = await gateway.record(key, idOf(client));
      expect(record).to.include({ billing: 'partial', status: 200, errorCode: 'INSUFFICIENT_BALANCE' });
      // The charge is what was sent until then, and no more than was held.
      expect(Number(record['outputTokens'])).to.be.at.least(100);
      expect(Number(record['cost'])).to.be.within(0.01, 0.75);
      const { balanceUsd, heldUsd } = await gateway.balance(key);
      expect([Number(balanceUsd) + Number(record['cost']), heldUsd]).to.deep.equal([0.75, '0.00000000']);
    });
  }

  it("cannot grow above the key's limit or for a frozen account, which ends the stream, but grows for a revoked key", async () => {
    upstream.always(talks.messages);
    const [limited, frozen, revoked] = await Promise.all([
      gateway.newCustomer('10', { balanceLimit: '0.6' }),
      gateway.newCustomer('10'),
      gateway.newCustomer('10'),
    ]);
    const [ofLimited, ofFrozen, ofRevoked] = [limited, frozen, revoked].map(({ key }) => begin(key)) as [
      LeavingClient,
      LeavingClient,
      LeavingClient,
    ];
    await Promise.all([ofFrozen.sees('word'), ofRevoked.sees('word')]);
    await gateway.admin('POST', `/admin/v1/accounts/${frozen.accountId}/freeze`);
    await gateway.admin('DELETE', `/admin/v1/keys/${revoked.keyId}`);
    await ofLimited.sees('KEY_LIMIT_EXCEEDED');
    await ofFrozen.sees('FORBIDDEN');
    const seen = ofRevoked.text.length;
    await until('the stream continues', () => ofRevoked.text.length > seen + 5_000);
    expect(ofRevoked.text).not.to.contain('event: error');
    ofRevoked.leave();
  });

  it('ends a stream with hidden reasoning before the client has any content, once it cannot grow', async () => {
    upstream.always(messagesStream({ texts: ['late'], firstTokenDelayMs: 30_000 }));
    const { key } = await gateway.newCustomer('0.55');
    const answered = await gateway.call(PATH.messages, { key, body: asked() });
    expect(answered.text).to.contain('INSUFFICIENT_BALANCE');
    await (await upstream.call(1)).clientGone;
    const record = await gateway.record(key, String(answered.headers['request-id']));
    expect(record).to.include({ billing: 'partial', errorCode: 'INSUFFICIENT_BALANCE' });
    expect(Number(record['cost'])).to.be.above(0);
    expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
  });

  it('is never more than the whole answer can cost', async () => {
    upstream.always(messagesStream({ texts: ['a few ', 'words'], firstTokenDelayMs: 2_500 }));
    const { key } = await gateway.newCustomer('0.15');
    const answered = await gateway.call(PATH.messages, { key, body: asked({ max_tokens: 1_000 }) });
    const record = await gateway.record(key, String(answered.headers['request-id']));
    expect(record).to.include({ billing: 'actual', errorCode: null });
  });

  it('covers the whole answer for an unstreamed call, or if a candidate lacks `stopsOnCancel` or `maxTokensPerSecond`', async () => {
    upstream.always(messagesAnswer());
    const { key } = await gateway.newCustomer('10');
    for (const more of [{ model: 'unsaid' }, { model: 'both' }, { model: 'unknown' }, { stream: false }]) {
      const answered = await gateway.call(PATH.messages, { key, body: asked(more) });
      expect([answered.status, answered.json.error.code]).to.deep.equal([402, 'INSUFFICIENT_BALANCE']);
      expect(Number(answered.json.error.details.requiredUsd)).to.be.above(12.8);
    }
    expect(upstream.calls).to.have.length(0);
  });
});
