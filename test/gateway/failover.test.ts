import { expect } from 'chai';
import { ask, askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { answerOf, DIALECT, errorStreamOf, failureOf, streamOf } from '../support/dialects';
import type { Answered, TestEndpoint } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import {
  closeBeforeHeaders,
  closedPort,
  after as later,
  malformedJson,
  messagesAnswer,
  messagesFailure,
  neverAnswer,
  rawBytes,
  resetBeforeHeaders,
  respond,
  type Script,
  stallRefusing,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

/** Returns the faults of a first upstream, and whether each concerns streams only. */
function failures(protocol: TestProtocol): Readonly<Record<string, { script: Script; stream?: boolean }>> {
  const failure = failureOf[protocol];
  return {
    'resets before the head': { script: resetBeforeHeaders() },
    'closes before the head': { script: closeBeforeHeaders() },
    'does not answer in HTTP': { script: rawBytes('SSH-2.0-OpenSSH\r\n') },
    'answers 401': { script: failure(401) },
    'answers 402': { script: failure(402) },
    'answers 403': { script: failure(403) },
    'answers 404': { script: failure(404) },
    'answers 408': { script: failure(408) },
    'answers 409': { script: failure(409) },
    'answers 425': { script: failure(425) },
    'answers 429 with Retry-After': { script: failure(429, {}, { 'retry-after': '60' }) },
    'answers 429': { script: failure(429) },
    'answers 500': { script: failure(500) },
    'answers 503': { script: failure(503) },
    'answers 529': { script: failure(529) },
    'answers 400 because it is out of credit': { script: failure(400, { message: 'Your credit balance is too low.' }) },
    'answers with half of a JSON document': { script: malformedJson() },
    'never answers': { script: neverAnswer() },
    'begins with an error event': { script: errorStreamOf[protocol](), stream: true },
    'sends its preamble and an error': {
      script: errorStreamOf[protocol]({ afterEvents: Math.min(2, DIALECT[protocol].preamble) }),
      stream: true,
    },
    'ends after its preamble': {
      script: streamOf(protocol, { cutAfter: DIALECT[protocol].preamble, cut: 'end' }),
      stream: true,
    },
    'resets after its preamble': {
      script: streamOf(protocol, { cutAfter: DIALECT[protocol].preamble, cut: 'reset' }),
      stream: true,
    },
    'begins with a malformed event': {
      script: streamOf(protocol, { malformedAt: { event: 0 } }),
      stream: true,
    },
    'is late with its first content': { script: streamOf(protocol, { firstTokenDelayMs: 20_000 }), stream: true },
  };
}

/** How many tests get their own model and two upstreams, so that no test depends on what another left behind. */
const STORIES = 150;
const TIMEOUTS = { connect: '1s', headers: '700ms', firstToken: '700ms', idle: '1s' };

function pairs(first: TestUpstream, second: TestUpstream): Record<string, TestEndpoint> {
  const upstreams: Record<string, TestEndpoint> = {};
  for (let story = 0; story < STORIES; story += 1) {
    const both = { timeouts: TIMEOUTS };
    const model = `model-${story}`;
    upstreams[`first-${story}`] = { ...both, url: first.url, tier: 'official', models: { [model]: {} } };
    upstreams[`second-${story}`] = { ...both, url: second.url, models: { [model]: { context: 400_000 } } };
  }
  return upstreams;
}

/** No silence is explained by an answer of so few tokens. */
const SHORT = 16;

describe('Failover', () => {
  const first = useUpstream();
  const second = useUpstream();
  let key: string;
  let story = 0;

  const gateway = useGateway(async () => ({
    upstreams: {
      ...pairs(first, second),
      refusing: { url: await closedPort(), tier: 'official', models: { refused: {} } },
      unresolved: { url: 'http://nobody.invalid', tier: 'official', models: { unresolved: {} } },
      untrusted: { url: first.url.replace('http:', 'https:'), tier: 'official', models: { untrusted: {} } },
      unhurried: { url: first.url, tier: 'official', timeouts: { idle: '300s' }, models: { unhurried: {} } },
      backing: { url: second.url, models: { refused: {}, unresolved: {}, untrusted: {}, unhurried: {} } },
    },
  }));

  before(async () => {
    ({ key } = await gateway.newCustomer('1000'));
  });
  beforeEach(() => {
    first.reset();
    second.reset();
    nextStory();
  });

  const nextStory = () => {
    story += 1;
  };
  const call = (protocol: TestProtocol, more: Record<string, unknown> = {}): Promise<Answered> =>
    gateway.call(PATH[protocol], {
      key,
      body: askIn(protocol, { model: `model-${story}`, max_tokens: SHORT, ...more }),
    });
  const recordOf = (answer: Answered) => gateway.record(key, answer.headers['x-svc-request-id'] ?? '');

  for (const protocol of PROTOCOLS) {
    const answered = new Map<string, Answered>();
    for (const [what, { script, stream = false }] of Object.entries(failures(protocol))) {
      it(`${protocol}: the next candidate answers if the first ${what}`, async () => {
        first.always(script);
        second.always(stream ? streamOf(protocol) : answerOf[protocol]());
        const answer = await call(protocol, { stream });
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.headers).to.include({
          'x-routing-provider': `second-${story}`,
          'x-routing-attempts': '2',
          'x-routing-fallback': 'true',
          'x-svc-source': 'provider',
        });
        expect(answer.text.replaceAll('"error":null', '')).not.to.include('error');
        if (stream) expect(answer.text).to.match(DIALECT[protocol].end);
        expect(first.calls).to.have.length(1);
        expect(second.calls).to.have.length(1);
        answered.set(what, answer);
      });
    }

    it(`${protocol}: the customer pays only for the answer, whatever the first candidate did`, async () => {
      expect(answered).to.have.length.of.at.least(20);
      for (const [what, answer] of answered) {
        const upstream = answer.headers['x-routing-provider'];
        const record = await recordOf(answer);
        expect(record, what).to.include({ upstream, cost: '0.00010500', billing: 'actual' });
      }
    });

    for (const model of ['refused', 'unresolved', 'untrusted']) {
      it(`${protocol}: the next candidate answers if the connection to the first fails (${model})`, async () => {
        second.always(answerOf[protocol]());
        const answer = await call(protocol, { model });
        expect(answer.headers).to.include({ 'x-routing-provider': 'backing', 'x-routing-attempts': '2' });
      });
    }

    it(`${protocol}: the next candidate answers if the first does not finish the body of its error answer`, async () => {
      first.always(stallRefusing(503));
      second.always(answerOf[protocol]());
      const answer = await call(protocol, { model: 'unhurried' });
      expect(answer.headers).to.include({ 'x-routing-provider': 'backing', 'x-routing-attempts': '2' });
      await (await first.call(1)).clientGone;
    });

    for (const [what, failure] of [
      ['a content filter', failureOf[protocol](400, { type: 'content_filter', message: 'not this' })],
      ['a wrong request', failureOf[protocol](400, { type: 'invalid_request_error', message: 'not this' })],
      ['an unprocessable request', failureOf[protocol](422, { message: 'not this' })],
    ] as const) {
      it(`${protocol}: an upstream's refusal of ${what} is relayed unchanged after one attempt`, async () => {
        first.always(failure);
        const answer = await call(protocol);
        expect(answer.headers).to.include({ 'x-svc-source': 'provider', 'x-routing-attempts': '1' });
        expect(answer.text).to.include('not this');
        expect(second.calls).to.have.length(0);
      });
    }

    it(`${protocol}: a prompt that is too long is retried only at a model with a larger context window`, async () => {
      const tooLong = failureOf[protocol](400, { message: 'prompt is too long: 200001 tokens' });
      first.next(tooLong);
      second.next(answerOf[protocol]());
      expect((await call(protocol)).headers).to.include({
        'x-routing-provider': `second-${story}`,
        'x-routing-attempts': '2',
      });
      nextStory();
      first.next(failureOf[protocol](500));
      second.next(tooLong);
      const relayed = await call(protocol);
      expect(relayed.status).to.equal(400);
      expect(relayed.text).to.include('prompt is too long');
      expect(relayed.headers).to.include({ 'x-svc-source': 'provider', 'x-routing-attempts': '2' });
    });

    it(`${protocol}: the client gets 429 with the shortest Retry-After if all candidates answer 429`, async () => {
      first.always(failureOf[protocol](429, {}, { 'retry-after': '7' }));
      second.always(failureOf[protocol](429, {}, { 'retry-after': '60' }));
      const answer = await call(protocol);
      expect(answer.status).to.equal(429);
      expect(answer.json.error).to.include({ code: 'UPSTREAM_RATE_LIMITED', type: 'rate_limit_error' });
      expect(answer.headers).to.include({ 'retry-after': '7', 'x-should-retry': 'true', 'x-routing-attempts': '2' });
      expect(first.calls).to.have.length(1);
      expect(second.calls).to.have.length(1);
    });

    it(`${protocol}: the client gets 504 if no candidate answers in time, and none is called twice`, async () => {
      first.always(neverAnswer());
      second.always(neverAnswer());
      const answer = await call(protocol);
      expect(answer.status).to.equal(504);
      expect(answer.json.error.details.attempts.map((each: { outcome: string }) => each.outcome)).to.deep.equal([
        'timeout',
        'timeout',
      ]);
      expect([first.calls.length, second.calls.length]).to.deep.equal([1, 1]);
    });

    it(`${protocol}: the client gets 502 with the outcome of each attempt if candidates fail differently`, async () => {
      first.always(failureOf[protocol](401));
      second.always(failureOf[protocol](402));
      const answer = await call(protocol);
      expect(answer.status).to.equal(502);
      const [one, two] = answer.json.error.details.attempts;
      expect(one).to.include({ upstream: `first-${story}`, outcome: 'status', status: 401 });
      expect(two).to.include({ upstream: `second-${story}`, outcome: 'status', status: 402 });
      expect(one.ms).to.be.a('number');
      expect(await recordOf(answer)).to.include({ billing: 'released', cost: '0.00000000', attempts: 2 });
    });

    for (const status of [404, 409]) {
      it(`${protocol}: the last candidate's ${status} is relayed unchanged`, async () => {
        first.always(failureOf[protocol](500));
        second.always(failureOf[protocol](status, { message: 'mine' }));
        const answer = await call(protocol);
        expect(answer.status).to.equal(status);
        expect(answer.headers).to.include({ 'x-svc-source': 'provider', 'x-routing-attempts': '2' });
        expect(answer.text).to.include('mine');
      });
    }
  }

  it('does not count an attempt on an idle connection that the upstream resets when it is reused', async () => {
    first.next(answerOf.messages(), resetBeforeHeaders(), answerOf.messages());
    await call('messages');
    const answer = await call('messages');
    expect(answer.headers).to.include({ 'x-routing-provider': `first-${story}`, 'x-routing-attempts': '1' });
    const [one, two, three] = first.calls.map(({ connection }) => connection);
    expect(two).to.equal(one);
    expect(three).not.to.equal(two);
  });

  it('counts an attempt as failed if the upstream resets the reused connection and then the fresh one', async () => {
    first.next(answerOf.messages(), resetBeforeHeaders(), resetBeforeHeaders());
    second.next(answerOf.messages());
    await call('messages');
    expect((await call('messages')).headers).to.include({
      'x-routing-provider': `second-${story}`,
      'x-routing-attempts': '2',
    });
    expect(first.calls).to.have.length(3);
  });
});

describe('Failover with one working upstream', () => {
  const upstream = useUpstream();
  let everybody: TestUpstream[];
  let key: string;

  const gateway = useGateway(async () => {
    everybody = await Promise.all(Array.from({ length: 4 }, startUpstream));
    return {
      upstreams: {
        acme: { url: upstream.url, timeouts: { connect: '1s', headers: '1s', idle: '1s' } },
        'down-1': { url: await closedPort(), tier: 'official', models: { trio: {} } },
        'down-2': { url: await closedPort(), tier: 'official', models: { trio: {} } },
        last: { url: upstream.url, models: { trio: {} } },
        slow: {
          url: upstream.url,
          timeouts: { connect: '1s', headers: '1s', answer: '2s' },
          models: { slow: { maxOutput: 4_096 } },
        },
        ...Object.fromEntries(everybody.map(({ url }, at) => [`one-of-${at}`, { url, models: { everybody: {} } }])),
      },
      system: { ejection: { baseTime: '500ms' } },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('1000'));
  });
  after(async () => {
    for (const each of everybody ?? []) await each.stop();
  });
  beforeEach(() => upstream.reset());

  const call = () => gateway.call('/v1/messages', { key, body: ask() });
  const gapMs = () => (upstream.calls[1]?.at ?? 0) - (upstream.calls[0]?.at ?? 0);

  it("retries the call once, after the upstream's Retry-After", async () => {
    upstream.next(messagesFailure(503, {}, { 'retry-after': '1' }), messagesAnswer());
    const answer = await call();
    expect(answer.status).to.equal(200);
    expect(answer.headers).to.include({ 'x-routing-attempts': '2', 'x-routing-fallback': 'false' });
    expect(gapMs()).to.be.at.least(990);
  });

  it('does not retry the call if Retry-After is longer than two seconds', async () => {
    upstream.always(messagesFailure(429, {}, { 'retry-after': '3' }));
    const answer = await call();
    expect(answer.status).to.equal(429);
    expect(answer.headers['retry-after']).to.equal('3');
    expect(upstream.calls).to.have.length(1);
  });

  it('does not retry the call if the client has disconnected meanwhile', async () => {
    upstream.always(later(50, respond({ status: 503, headers: { 'retry-after': '2' }, body: {} })));
    const leaving = new AbortController();
    const asked = fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(ask()),
      signal: leaving.signal,
    }).catch(() => undefined);
    const seen = await upstream.call(1);
    await seen.ended;
    leaving.abort();
    await asked;
    upstream.always(messagesAnswer());
    expect((await call()).status).to.equal(200);
    expect(upstream.calls).to.have.length(2);
  });

  it('ejects the upstream after timeouts, except those of unstreamed calls whose output limit explains the wait', async () => {
    upstream.always(neverAnswer());
    const timeouts = async (more: Record<string, unknown>) => {
      const body = ask({ model: 'slow', ...more });
      const calls = Array.from({ length: 6 }, () => gateway.call('/v1/messages', { key, body }));
      for (const { status } of await Promise.all(calls)) expect(status).to.equal(504);
      const { items } = (await gateway.admin('GET', '/admin/v1/upstreams')).json;
      return items.find(({ name }: { name: string }) => name === 'slow').state;
    };
    // At the usual 50 tokens a second the first answer may take 82 s, the second a third of a second.
    expect(await timeouts({ max_tokens: 4_096 })).to.equal('available');
    expect(await timeouts({ max_tokens: 16 })).to.equal('ejected');
  });

  it('adds at most a fifth more attempts while four upstreams fail at 200 calls a second', async () => {
    for (const each of everybody) each.always(later(100, messagesFailure(500)));
    const calls = 400;
    const answers: Promise<Answered>[] = [];
    const body = ask({ model: 'everybody' });
    for (
      const startedMs = performance.now();
      answers.length < calls;
      await new Promise((wake) => setTimeout(wake, 5))
    ) {
      const due = Math.min(calls, Math.floor((performance.now() - startedMs) / 5));
      while (answers.length < due) answers.push(gateway.call('/v1/messages', { key, body }));
    }
    // On a busy machine Redis may be too slow, and the gateway refuses a call before it asks an upstream.
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses.every((status) => status === 502 || status === 503)).to.equal(true);
    const routed = statuses.filter((status) => status === 502).length;
    expect(routed).to.be.above(100);
    const { items } = (await gateway.admin('GET', '/admin/v1/upstreams')).json;
    const states = items
      .filter(({ name }: { name: string }) => name.startsWith('one-of-'))
      .map((each: { state: string }) => each.state);
    expect(states).to.include('ejected');
    const attempts = everybody.map((each) => each.calls.length);
    expect(attempts.reduce((sum, each) => sum + each)).to.be.within(routed, routed * 1.2 + 3);
    for (const each of attempts) expect(each).to.be.above(0);
  });
});
