import { expect } from 'chai';
import { request } from 'undici';
import { askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { afterTexts, DIALECT, streamOf } from '../support/dialects';
import { type Answered, MODEL, startGateway, type TestEndpoint, type TestGateway } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

/** The part of an answer before the break. */
const BEGUN = { texts: ['one ', 'two ', 'three '], usage: { input: 1_000, output: 99 } };

describe('A stream that breaks after content', function () {
  this.timeout(60_000);
  let first: TestUpstream;
  let second: TestUpstream;
  let gateway: TestGateway;
  let key: string;
  let story = 0;

  before(async () => {
    [first, second] = [await startUpstream(), await startUpstream()];
    const upstreams: Record<string, TestEndpoint> = {};
    for (let each = 0; each < 120; each += 1) {
      const timeouts = { connect: '1s', headers: '1s', idle: '700ms' };
      const models = { [`${MODEL}-${each}`]: {} };
      upstreams[`first-${each}`] = { url: first.url, tier: 'official', timeouts, models };
      upstreams[`second-${each}`] = { url: second.url, timeouts, models };
    }
    gateway = await startGateway({
      upstreams,
      configure: (config) => {
        setPolicy(config, 'reserve-settle', { onClientAbort: 'drain' }, 'cost');
      },
    });
    ({ key } = await gateway.newCustomer('1000'));
  });
  after(async () => {
    await gateway?.stop();
    await first?.stop();
    await second?.stop();
  });
  beforeEach(() => {
    first.reset();
    second.reset();
    story += 1;
  });

  const model = () => `${MODEL}-${story}`;
  const call = (protocol: TestProtocol, more: Record<string, unknown> = {}, prefix = ''): Promise<Answered> =>
    gateway.call(`${prefix}${PATH[protocol]}`, {
      key,
      body: askIn(protocol, { model: model(), stream: true, ...more }),
    });
  const recordOf = (answer: Answered) => gateway.record(key, answer.headers['x-svc-request-id'] ?? '');

  function expectError(protocol: TestProtocol, answer: Answered, code: string) {
    expect(answer.status).to.equal(200);
    expect(answer.text).to.include('one ').and.to.include(code);
    expect(answer.text).not.to.match(DIALECT[protocol].end);
    const last = answer.text.trimEnd().split('\n\n').at(-1) ?? '';
    expect(last).to.match(DIALECT[protocol].errorEnd);
  }

  for (const protocol of PROTOCOLS) {
    const cuts = {
      'is reset': { script: { cutAfter: afterTexts(protocol, 3), cut: 'reset' }, code: 'ALL_PROVIDERS_FAILED' },
      'is closed': { script: { cutAfter: afterTexts(protocol, 3), cut: 'fin' }, code: 'ALL_PROVIDERS_FAILED' },
      'is closed inside a chunk': {
        script: { cutAfter: afterTexts(protocol, 3), cut: 'fin-mid-chunk' },
        code: 'ALL_PROVIDERS_FAILED',
      },
      'ends in order, but early': {
        script: { cutAfter: afterTexts(protocol, 3), cut: 'end' },
        code: 'ALL_PROVIDERS_FAILED',
      },
      stalls: { script: { cutAfter: afterTexts(protocol, 3), cut: 'stall' }, code: 'UPSTREAM_TIMEOUT' },
      'becomes malformed': {
        script: { malformedAt: { event: afterTexts(protocol, 3) } },
        code: 'ALL_PROVIDERS_FAILED',
      },
    } as const;

    for (const [what, { script, code }] of Object.entries(cuts)) {
      it(`costs nothing and ends with the error event if it ${what} (${protocol})`, async () => {
        first.always(streamOf(protocol, { ...BEGUN, ...script }));
        const answer = await call(protocol);
        expectError(protocol, answer, code);
        expect(await recordOf(answer)).to.include({
          billing: 'released',
          cost: '0.00000000',
          errorCode: code,
          status: 200,
        });
        expect(second.calls).to.have.length(0);
        first.always(streamOf(protocol));
        expect((await call(protocol)).text, 'healthy afterwards').to.match(DIALECT[protocol].end);
      });
    }

    it(`with onClientAbort: drain costs a client that disconnects what the upstream reports (${protocol})`, async () => {
      first.always(
        streamOf(protocol, { texts: Array.from({ length: 60 }, () => 'word '), usage: BEGUN.usage, delayMs: 15 }),
      );
      const cheap = await leaveAfterContent(protocol, '/cost');
      const seen = await first.call(1);
      await seen.ended;
      expect(seen.closedEarly).to.equal(false);
      const record = await gateway.record(key, cheap);
      expect(record).to.include({ billing: 'actual', inputTokens: 1_000, outputTokens: 99, status: 200 });
    });
  }

  it('differs from a broken unstreamed answer, after which the next candidate answers the call from the start', async () => {
    first.always(messagesAnswer({}, { cutBody: 20 }));
    second.always(messagesAnswer({ text: 'whole' }));
    const answer = await call('messages', { stream: false });
    expect(answer.status).to.equal(200);
    expect(answer.text).to.include('whole');
    expect(answer.headers['x-routing-attempts']).to.equal('2');
    expect(first.calls).to.have.length(1);
    expect(String(second.calls[0]?.body)).to.include('Hello');
  });

  /** Reads the first content, disconnects and returns the request id. */
  async function leaveAfterContent(protocol: TestProtocol, prefix: string): Promise<string> {
    const leaving = new AbortController();
    const answer = await request(`${gateway.url}${prefix}${PATH[protocol]}`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(askIn(protocol, { model: model(), stream: true })),
      signal: leaving.signal,
    });
    answer.body.on('error', () => undefined);
    let text = '';
    answer.body.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    await until('some content has come', () => text.includes('word'));
    leaving.abort();
    return String(answer.headers['x-svc-request-id']);
  }
});
