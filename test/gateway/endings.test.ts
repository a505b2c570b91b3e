import { expect } from 'chai';
import { request } from 'undici';
import { ask, askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { afterTexts, answerOf, DIALECT, errorStreamOf, failureOf } from '../support/dialects';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import {
  chatErrorStream,
  chatStream,
  messagesErrorStream,
  neverAnswer,
  type Script,
  type StreamScript,
} from '../support/upstream';

const USAGE = { input: 1_000, output: 200 };
/** The cost of that usage: 1,000 × 3 + 200 × 15 USD per million. */
const COST = '0.00600000';

function streamOf(protocol: TestProtocol, options: Record<string, unknown> = {}): Script {
  const said = { texts: ['one ', 'two ', 'three '], usage: USAGE, ...options };
  return DIALECT[protocol].stream(said);
}

/** Each way in which an upstream breaks off behind content, and what the client is told. */
function cutsOf(protocol: TestProtocol) {
  const cutAfter = afterTexts(protocol, 1);
  const failed = { type: 'api_error', code: 'ALL_PROVIDERS_FAILED' } as const;
  return {
    'is reset': { cutAfter, cut: 'reset', ...failed },
    'is closed': { cutAfter, cut: 'fin', ...failed },
    'is closed inside a chunk': { cutAfter, cut: 'fin-mid-chunk', ...failed },
    'ends in order, but early': { cutAfter, cut: 'end', ...failed },
    stalls: { cutAfter, cut: 'stall', type: 'timeout_error', code: 'UPSTREAM_TIMEOUT' },
    'becomes malformed': { malformedAt: { event: cutAfter }, ...failed },
  } as const;
}

describe('The cost of a call, which depends on how the call ends', () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url, timeouts: { connect: '1s', headers: '1s', idle: '1s' } } },
  }));
  beforeEach(() => upstream.reset());

  /** Expects this billing in the record, the same cost in the balance, and nothing held. */
  async function expectCharged(
    key: string,
    requestId: string,
    expected: { billing: string; cost?: string; status?: number },
  ) {
    const record = await gateway.record(key, requestId);
    expect(record['billing']).to.equal(expected.billing);
    if (expected.cost !== undefined) expect(record['cost']).to.equal(expected.cost);
    if (expected.status !== undefined) expect(record['status']).to.equal(expected.status);
    const balance = await gateway.balance(key);
    expect(balance.heldUsd).to.equal('0.00000000');
    expect(Number(balance.balanceUsd)).to.be.closeTo(10 - Number(record['cost']), 1e-9);
    expect(balance.key['spentUsd']).to.equal(record['cost']);
    return record;
  }

  for (const protocol of PROTOCOLS) {
    describe(`in the protocol ${protocol}:`, () => {
      it('an unstreamed answer costs the price of its usage, with equal amounts in header, record and balance', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(answerOf[protocol]({ usage: USAGE }));
        const answer = await gateway.call(PATH[protocol], { key, body: askIn(protocol) });
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.headers).to.include({
          'x-ai-cost': COST,
          'x-ai-tokens-input': '1000',
          'x-ai-tokens-output': '200',
          'x-ai-tokens-total': '1200',
          'x-routing-provider': 'acme',
          'x-routing-attempts': '1',
          'x-routing-fallback': 'false',
          'x-svc-source': 'provider',
        });
        const record = await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', {
          billing: 'actual',
          cost: COST,
          status: 200,
        });
        expect(record).to.include({
          inputTokens: 1_000,
          outputTokens: 200,
          totalTokens: 1_200,
          protocol,
          upstream: 'acme',
          stream: false,
        });
      });

      it('a stream costs the price of its usage, and the member `cost` in its last usage report has that amount', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(streamOf(protocol));
        const answer = await gateway.call(PATH[protocol], { key, body: askIn(protocol, { stream: true }) });
        expect(answer.status).to.equal(200);
        expect(answer.headers).not.to.have.property('x-ai-cost');
        expect(answer.text).to.include(`"cost":${COST}`);
        expect(answer.text).to.match(DIALECT[protocol].end);
        await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', {
          billing: 'actual',
          cost: COST,
          status: 200,
        });
      });

      it('cache tokens are charged at their own prices and count as input', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(answerOf[protocol]({ usage: { input: 1_000, output: 200, cacheRead: 500 } }));
        const answer = await gateway.call(PATH[protocol], { key, body: askIn(protocol) });
        expect(answer.headers['x-ai-tokens-input']).to.equal('1500');
        await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', { billing: 'actual', cost: '0.00615000' });
      });

      it('a stream without a usage report is charged by an estimate of the tokens in the relayed text', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(
          protocol === 'chat'
            ? chatStream({ texts: ['abcd', 'efgh'], withUsage: false })
            : streamOf(protocol, { texts: ['abcd', 'efgh'], rawUsage: null }),
        );
        const answer = await gateway.call(PATH[protocol], { key, body: askIn(protocol, { stream: true }) });
        expect(answer.status).to.equal(200);
        const record = await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', { billing: 'estimated' });
        expect(record['outputTokens']).to.equal(2);
        expect(Number(record['cost'])).to.be.greaterThan(0);
      });

      it("an upstream's refusal of the request is relayed unchanged and costs nothing", async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(failureOf[protocol](422, { message: 'not like this' }));
        const answer = await gateway.call(PATH[protocol], { key, body: askIn(protocol) });
        expect(answer.status).to.equal(422);
        expect(answer.headers['x-svc-source']).to.equal('provider');
        expect(answer.text).to.include('not like this');
        await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', {
          billing: 'released',
          cost: '0.00000000',
          status: 422,
        });
      });

      it('a call whose attempts all fail costs nothing, and gets 502 with the attempts', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(failureOf[protocol](500));
        const answer = await gateway.call(PATH[protocol], { key, body: askIn(protocol) });
        expect(answer.status).to.equal(502);
        expect(answer.json.error.code).to.equal('ALL_PROVIDERS_FAILED');
        expect(answer.json.error.details.attempts[0]).to.include({ upstream: 'acme', outcome: 'status', status: 500 });
        expect(answer.headers['x-svc-source']).to.equal('platform');
        await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', {
          billing: 'released',
          cost: '0.00000000',
          status: 502,
        });
      });

      it('a call that the upstream never answers costs nothing, and gets 504', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(neverAnswer());
        const body = askIn(protocol, { max_tokens: 16 });
        const answer = await gateway.call(PATH[protocol], { key, body });
        expect(answer.status).to.equal(504);
        expect(answer.json.error.code).to.equal('UPSTREAM_TIMEOUT');
        await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', { billing: 'released', cost: '0.00000000' });
      });

      for (const [how, { type, code, ...script }] of Object.entries(cutsOf(protocol)))
        it(`a stream that breaks off after content costs nothing and ends with the protocol's error event: it ${how}`, async () => {
          const { key } = await gateway.newCustomer('10');
          upstream.always(streamOf(protocol, script));
          const answer = await gateway.call(PATH[protocol], { key, body: askIn(protocol, { stream: true }) });
          expect(answer.status).to.equal(200);
          expect(answer.text).to.include('one ').and.to.include(code);
          expect(answer.text).not.to.match(DIALECT[protocol].end);
          const last = answer.text.trimEnd().split('\n\n').at(-1);
          expect(last).to.match(DIALECT[protocol].errorEnd);
          // The types are those that the vendors' SDKs know.
          if (protocol !== 'responses')
            expect(last).to.include(`"type":"${protocol === 'chat' ? 'server_error' : type}"`);
          const record = await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', {
            billing: 'released',
            cost: '0.00000000',
            status: 200,
          });
          expect(record['errorCode']).to.equal(code);
        });

      it('an error that the upstream reports in a stream is relayed unchanged and costs nothing', async () => {
        const { key } = await gateway.newCustomer('10');
        const script = errorStreamOf[protocol]({ afterEvents: afterTexts(protocol, 1) });
        upstream.always(script);
        const answer = await gateway.call(PATH[protocol], { key, body: askIn(protocol, { stream: true }) });
        expect(answer.text).to.equal((script as StreamScript).text);
        await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', { billing: 'released', cost: '0.00000000' });
      });

      it('a call costs nothing if its client disconnects before any answer, and the gateway disconnects from the upstream', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.always(neverAnswer());
        const leaving = new AbortController();
        const asked = request(`${gateway.url}${PATH[protocol]}`, {
          method: 'POST',
          headers: { 'x-api-key': key, 'content-type': 'application/json' },
          body: JSON.stringify(askIn(protocol, { max_tokens: 16 })),
          signal: leaving.signal,
        }).catch((error: unknown) => error);
        const seen = await upstream.call(1);
        leaving.abort();
        await asked;
        await seen.clientGone;
        const [record] = await until('the record', async () => {
          const list = await gateway.call('/v1/usage', { method: 'GET', key });
          return list.json.items.length > 0 ? list.json.items : undefined;
        });
        expect(record).to.include({ billing: 'released', cost: '0.00000000', status: 499 });
        expect((await gateway.balance(key)).availableUsd).to.equal('10.00000000');
      });
    });
  }

  for (const [protocol, script] of [
    ['messages', messagesErrorStream({ afterEvents: 6 })],
    ['chat', chatErrorStream({ afterEvents: 3 })],
  ] as const)
    it(`an answer that was complete before an error in its stream costs the price of its usage (${protocol})`, async () => {
      const { key } = await gateway.newCustomer('10');
      upstream.always(script);
      const answer = await gateway.call(PATH[protocol], { key, body: ask({ stream: true }) });
      expect(answer.text).not.to.include('error');
      const billing = protocol === 'messages' ? 'actual' : 'estimated';
      const record = await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', { billing, status: 200 });
      expect(record).to.include({ source: 'provider', errorCode: null });
      expect(Number(record['cost'])).to.be.above(0);
    });

  it('a call that is refused before the reserve costs nothing and has a record', async () => {
    const { key } = await gateway.newCustomer('10');
    const answer = await gateway.call('/v1/messages', { key, body: ask({ model: 'nobody-has-this' }) });
    expect(answer.status).to.equal(400);
    await expectCharged(key, answer.headers['x-svc-request-id'] ?? '', {
      billing: 'released',
      cost: '0.00000000',
      status: 400,
    });
  });
});
