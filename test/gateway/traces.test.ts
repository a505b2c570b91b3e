import { expect } from 'chai';
import { ask, askAsSent, PATH } from '../support/calls';
import { type CollectedSpan, TestCollector } from '../support/collector';
import { type Answered, MODEL, startGateway, type TestGateway, UPSTREAM_CREDENTIAL } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import {
  chatStream,
  messagesAnswer,
  messagesFailure,
  messagesStream,
  responsesStream,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

const USAGE = { input: 1_000, output: 100, cacheRead: 200 };
const PROMPT = 'a question that no collector may see';
const ANSWER = 'an answer that no collector may see';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const STATE = 'vendor=1';
const PARENT = `00-${TRACE}-${SPAN}-01`;

/** The environment that makes the exporter send spans at once. */
const QUICKLY = { OTEL_BSP_SCHEDULE_DELAY: '20' };

describe('Traces', () => {
  let collector: TestCollector;
  let first: TestUpstream;
  let second: TestUpstream;
  let gateway: TestGateway;
  let accountId: string;
  let keyId: string;
  let key: string;

  before(async () => {
    [collector, first, second] = await Promise.all([TestCollector.start(), startUpstream(), startUpstream()]);
    const timeouts = { connect: '1s', headers: '1s', idle: '700ms' };
    gateway = await startGateway({
      upstreams: {
        first: { url: first.url, tier: 'official', timeouts, models: { [MODEL]: {}, alone: {}, untraced: {} } },
        second: { url: second.url, timeouts },
        chat: { url: second.url, adapter: 'chat', timeouts, models: { translated: {} } },
        secluded: { url: second.url, timeouts, traceContext: false, models: { secluded: {} } },
        socket: { url: second.url, timeouts, webSocket: true, models: { socket: {} } },
        own: { url: first.url, timeouts, models: { mirrored: {} } },
        mirror: { url: second.url, timeouts, models: { mirrored: {} } },
      },
      system: { ejection: { consecutiveFailures: 100 } },
      configure: (config) => {
        const change = { upstreams: { model: 'mirrored', add: ['mirror'] } };
        config['rollouts'] = { 'to-mirror': { change, stages: [{ share: 0, hold: '1h' }], shadow: 100 } };
      },
      env: {
        ...QUICKLY,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=secret-of-the-collector',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=tests',
        OTEL_SERVICE_NAME: 'gateway-of-tests',
      },
    });
    ({ accountId, keyId, key } = await gateway.newCustomer('1000'));
  });
  after(async () => {
    await gateway?.stop();
    await Promise.all([collector?.stop(), first?.stop(), second?.stop()]);
  });
  beforeEach(() => {
    first.reset();
    second.reset();
  });

  /** Returns the spans of a call: its own, and those of its attempts in order. */
  async function spansOf(requestId: string, attempts: number): Promise<[CollectedSpan, ...CollectedSpan[]]> {
    const spans = await collector.trace(
      attempts + 1,
      ({ attributes }) => attributes['tollgate.request_id'] === requestId,
    );
    const call = spans.find(({ kind }) => kind === 'server');
    const clients = spans.filter(({ kind }) => kind === 'client');
    expect(spans).to.have.lengthOf(attempts + 1);
    expect(clients).to.have.lengthOf(attempts);
    if (call === undefined) throw new Error('there is no span of the call');
    for (const client of clients) {
      expect(client.parentSpanId).to.equal(call.spanId);
      expect(client.startMs).to.be.at.least(call.startMs);
      expect(client.endMs).to.be.within(client.startMs, call.endMs);
    }
    return [
      call,
      ...clients.sort(
        (one, other) => Number(one.attributes['tollgate.attempt']) - Number(other.attributes['tollgate.attempt']),
      ),
    ];
  }
  const spansFor = (answer: Answered, attempts: number) => spansOf(answer.headers['x-svc-request-id'] ?? '', attempts);
  const call = (more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
    gateway.call(PATH.messages, {
      key,
      headers,
      body: ask({ messages: [{ role: 'user', content: PROMPT }], ...more }),
    });

  it('have a span of the call and a child span for each attempt', async () => {
    first.always(messagesFailure(529, {}, { 'request-id': 'req_of_the_first' }));
    second.always(
      messagesAnswer({ texts: [ANSWER], usage: USAGE }, { headers: { 'request-id': 'req_of_the_second' } }),
    );
    const answer = await call();
    const [own, failed, answered] = await spansFor(answer, 2);
    expect(own).to.include({ name: 'POST /v1/messages', kind: 'server', parentSpanId: undefined, hasFailed: false });
    expect(own.attributes).to.include({
      'http.request.method': 'POST',
      'http.route': '/v1/messages',
      'url.path': '/v1/messages',
      'http.response.status_code': 200,
      'network.protocol.name': 'http',
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.request.model': MODEL,
      'gen_ai.response.model': answer.json.model,
      'gen_ai.usage.input_tokens': 1_200,
      'gen_ai.usage.output_tokens': 100,
      'gen_ai.usage.cache_read.input_tokens': 200,
      'tollgate.account_id': accountId,
      'tollgate.key_id': keyId,
      'tollgate.strategy': 'quality',
      'tollgate.upstream': 'second',
      'tollgate.attempts': 2,
      'tollgate.fallback': true,
      'tollgate.stream': false,
      'tollgate.client_left': false,
      'tollgate.cost_usd': 0.00456,
    });
    expect(own.attributes['gen_ai.response.finish_reasons']).to.deep.equal(['end_turn']);
    expect(own.resource).to.include({ 'service.name': 'gateway-of-tests', 'deployment.environment.name': 'tests' });
    expect(failed).to.include({ name: `chat ${MODEL}`, hasFailed: true });
    expect(failed?.attributes).to.include({
      'server.address': '127.0.0.1',
      'server.port': first.port,
      'http.response.status_code': 529,
      'error.type': 'status',
      'tollgate.upstream': 'first',
      'tollgate.attempt': 1,
      'tollgate.outcome': 'status',
      'tollgate.upstream_request_id': 'req_of_the_first',
      'tollgate.upstream_cost_usd': 0,
    });
    expect(answered?.hasFailed).to.equal(false);
    expect(answered?.attributes).to.include({
      'server.port': second.port,
      'http.response.status_code': 200,
      'gen_ai.response.model': answer.json.model,
      'gen_ai.usage.input_tokens': 1_200,
      'gen_ai.usage.output_tokens': 100,
      'tollgate.upstream': 'second',
      'tollgate.credential': 'env UPSTREAM_CREDENTIAL',
      'tollgate.attempt': 2,
      'tollgate.outcome': 'answered',
      'tollgate.upstream_request_id': 'req_of_the_second',
      'tollgate.upstream_cost_usd': 0.00456,
    });
    expect(answered?.attributes).to.not.have.property('error.type');
  });

  it('have spans that last as long as the stream, and contain the time of its first content', async () => {
    first.always(messagesStream({ texts: ['one ', 'two ', 'three'], usage: USAGE, delayMs: 60 }));
    const [own, attempt] = await spansFor(await call({ stream: true, model: 'alone' }), 1);
    for (const span of [own, attempt]) {
      expect(span?.endMs).to.be.greaterThan((span?.startMs ?? 0) + 180);
      expect(span?.attributes['gen_ai.response.finish_reasons']).to.deep.equal(['end_turn']);
      expect(span?.attributes['gen_ai.usage.output_tokens']).to.equal(100);
      expect(span?.attributes['tollgate.first_token_ms']).to.be.a('number');
    }
    expect(own.attributes).to.include({ 'tollgate.stream': true, 'tollgate.cost_usd': 0.00456 });
  });

  for (const [protocol, script, reason] of [
    ['chat', chatStream({ usage: USAGE }), 'stop'],
    ['responses', responsesStream({ usage: USAGE }), 'completed'],
  ] as const)
    it(`contain provider, model and finish reason of a ${protocol} stream`, async () => {
      first.always(script);
      const answer = await gateway.call(PATH[protocol], { key, body: { ...askAsSent(protocol), model: 'alone' } });
      const [own, attempt] = await spansFor(answer, 1);
      for (const span of [own, attempt]) {
        expect(span?.attributes['gen_ai.provider.name']).to.equal('openai');
        expect(span?.attributes['gen_ai.response.model']).to.be.a('string');
        expect(span?.attributes['gen_ai.response.finish_reasons']).to.deep.equal([reason]);
      }
    });

  it('mark a stream that breaks as failed', async () => {
    first.always(messagesStream({ texts: ['one ', 'two '], usage: USAGE, cutAfter: 5, cut: 'reset' }));
    const [own, attempt] = await spansFor(await call({ stream: true, model: 'alone' }), 1);
    expect(own.hasFailed).to.equal(true);
    expect(own.attributes).to.include({ 'http.response.status_code': 200, 'tollgate.cost_usd': 0 });
    expect(own.attributes['error.type']).to.be.a('string');
    expect(attempt?.hasFailed).to.equal(true);
    expect(attempt?.attributes).to.include({ 'error.type': 'reset', 'tollgate.outcome': 'reset' });
  });

  it('show that the client of a call disconnected, but do not mark the call as failed', async () => {
    first.always(messagesStream({ texts: ['one ', 'two ', 'three'], usage: USAGE, delayMs: 300 }));
    const client = new LeavingClient(gateway, PATH.messages, key, ask({ stream: true, model: 'alone' }));
    await client.sees('one ');
    client.leave();
    const { traceId } = await until('the span of the call', () =>
      collector.spans.find(({ attributes }) => attributes['tollgate.client_left'] === true),
    );
    const spans = await collector.trace(2, (span) => span.traceId === traceId);
    expect(spans.map(({ hasFailed }) => hasFailed)).to.deep.equal([false, false]);
  });

  it('have a span of a refused call, without an attempt', async () => {
    const path = PATH.messages;
    const { key: poor } = await gateway.newCustomer('0');
    for (const [refused, status, code] of [
      [await gateway.call(path, { key: 'sk-svc-wrong', body: ask() }), 401, 'INVALID_API_KEY'],
      [await gateway.call(path, { key: poor, body: ask() }), 402, 'INSUFFICIENT_BALANCE'],
      [await call({ model: PROMPT }), 400, 'MODEL_NOT_PRICED'],
    ] as const) {
      const [own] = await spansFor(refused, 0);
      expect(own.hasFailed).to.equal(false);
      expect(own.attributes).to.include({ 'http.response.status_code': status, 'error.type': code });
    }
  });

  it('have a span of the shadow call below the span of the call', async () => {
    first.always(messagesAnswer({ usage: USAGE }));
    second.always(messagesAnswer({ usage: { input: 5_000, output: 1_000 } }));
    const answer = await call({ model: 'mirrored' });
    const requestId = answer.headers['x-svc-request-id'];
    const spans = await collector.trace(3, ({ attributes }) => attributes['tollgate.request_id'] === requestId);
    const own = spans.find(({ kind }) => kind === 'server');
    const mirror = spans.find(({ attributes }) => attributes['tollgate.attempt'] === 0);
    expect(mirror).to.include({ parentSpanId: own?.spanId, hasFailed: false });
    expect(mirror?.attributes).to.include({
      'tollgate.upstream': 'mirror',
      'tollgate.outcome': 'answered',
      'gen_ai.usage.input_tokens': 5_000,
      'tollgate.upstream_cost_usd': 0.03,
    });
    expect(own?.attributes).to.include({ 'tollgate.attempts': 1, 'gen_ai.usage.input_tokens': 1_200 });
    expect((await second.call(1)).headers['traceparent']).to.equal(`00-${own?.traceId}-${mirror?.spanId}-01`);
  });

  it('continue the trace of the client, and are continued by upstreams', async () => {
    first.always(messagesAnswer({ usage: USAGE }));
    const [own, attempt] = await spansFor(
      await call({ model: 'alone' }, { traceparent: PARENT, tracestate: STATE }),
      1,
    );
    expect(own).to.include({ traceId: TRACE, parentSpanId: SPAN });
    const { headers } = await first.call(1);
    expect(headers).to.include({ traceparent: `00-${TRACE}-${attempt?.spanId}-01`, tracestate: STATE });
  });

  it('begin a new trace if the trace headers of the client are malformed', async () => {
    first.always(messagesAnswer({ usage: USAGE }));
    for (const traceparent of [
      `00-${TRACE}-${SPAN}`,
      `ff-${TRACE}-${SPAN}-01`,
      `00-${'0'.repeat(32)}-${SPAN}-01`,
      `00-${TRACE.toUpperCase()}-${SPAN}-01`,
      'x'.repeat(5_000),
    ]) {
      first.reset();
      first.always(messagesAnswer({ usage: USAGE }));
      const [own, attempt] = await spansFor(await call({ model: 'alone' }, { traceparent, tracestate: STATE }), 1);
      expect(own.parentSpanId).to.equal(undefined);
      expect(own.traceId).to.not.equal(TRACE);
      const { headers } = await first.call(1);
      expect(headers['traceparent']).to.equal(`00-${own.traceId}-${attempt?.spanId}-01`);
      expect(headers['tracestate']).to.equal(undefined);
    }
  });

  it('have no span of a call whose client does not sample its trace, and upstreams receive that decision', async () => {
    first.always(messagesAnswer({ usage: USAGE }));
    const unsampled = TRACE.replace('0af', '0ff');
    await call({ model: 'alone' }, { traceparent: `00-${unsampled}-${SPAN}-00`, tracestate: STATE });
    const { headers } = await first.call(1);
    expect(headers['traceparent']).to.match(new RegExp(`^00-${unsampled}-[0-9a-f]{16}-00$`));
    expect(headers['tracestate']).to.equal(STATE);
    await spansFor(await call({ model: 'alone' }), 1);
    expect(collector.spans.filter(({ traceId }) => traceId === unsampled)).to.deep.equal([]);
  });

  it('can be found from the histograms: a sampled call is an exemplar of its bucket, an unsampled call is not', async () => {
    first.always(messagesAnswer({ usage: USAGE }));
    const unsampled = TRACE.replace('0af', '0fe');
    const [own] = await spansFor(await call({ model: 'alone' }), 1);
    await call({ model: 'alone' }, { traceparent: `00-${unsampled}-${SPAN}-00` });
    const accept = 'application/openmetrics-text;version=1.0.0';
    const { text } = await gateway.admin('GET', '/metrics', undefined, { accept });
    const lines = text.split('\n').filter((line) => line.includes(`# {trace_id="${own.traceId}"}`));
    const sample = /^(tollgate_\w+)\{.*le="([\d.]+)".*\} \d+ # \{\S+\} ([\d.e-]+) [\d.]+$/;
    const exemplars = lines.map((line) => sample.exec(line)?.slice(1) ?? [line]);
    const ofCalls = ['tollgate_call_duration_seconds_bucket', 'tollgate_call_added_seconds_bucket'];
    expect(exemplars.map(([name]) => name)).to.have.members(ofCalls);
    for (const [, bound, seconds] of exemplars) expect(Number(seconds)).to.be.at.most(Number(bound));
    expect(text).to.not.include(unsampled);
  });

  it('do not reach an upstream with `traceContext: false`, which gets no trace headers', async () => {
    second.always(messagesAnswer({ usage: USAGE }));
    const parent = { traceparent: PARENT.replace('0af', '0b0'), tracestate: STATE };
    await spansFor(await call({ model: 'secluded' }, parent), 1);
    const { headers } = await second.call(1);
    expect(headers).to.not.have.any.keys('traceparent', 'tracestate');
  });

  for (const model of ['alone', 'socket'])
    it(`have a span of each call over a WebSocket, for the model ${model}`, async () => {
      for (const upstream of [first, second]) upstream.always(responsesStream({ usage: USAGE }));
      const parent = PARENT.replace('0af', model === 'alone' ? '0a0' : '0a1');
      const socket = await TestSocket.open(gateway, key, { headers: { traceparent: parent } });
      await socket.call({ model });
      await socket.call({ model });
      socket.close();
      const spans = await collector.trace(4, ({ traceId }) => parent.includes(traceId));
      const calls = spans.filter(({ kind }) => kind === 'server');
      expect(calls).to.have.lengthOf(2);
      for (const own of calls) {
        expect(own.parentSpanId).to.equal(SPAN);
        expect(own.attributes).to.include({ 'http.route': '/v1/responses', 'network.protocol.name': 'websocket' });
        const attempts = spans.filter(({ parentSpanId }) => parentSpanId === own.spanId);
        expect(attempts.map(({ attributes }) => attributes['tollgate.outcome'])).to.deep.equal(['answered']);
      }
    });

  it("are exported with the collector's headers, and contain no prompts, answers, keys or credentials", async () => {
    first.always(messagesAnswer({ texts: [ANSWER], usage: USAGE }));
    await spansFor(await call({ model: 'alone' }), 1);
    expect(collector.headers).to.include({ 'x-collector-key': 'secret-of-the-collector' });
    const sent = Buffer.concat(collector.bodies).toString('utf8');
    expect(sent).to.include(MODEL);
    for (const secret of [PROMPT, ANSWER, key, 'sk-svc-', UPSTREAM_CREDENTIAL, 'secret-of-the-collector', 'Hello'])
      expect(sent).to.not.include(secret);
    expect(gateway.output()).to.not.include('secret-of-the-collector');
  });
});

describe('Traces, depending on their settings,', () => {
  let upstream: TestUpstream;
  let collector: TestCollector;

  before(async () => {
    [collector, upstream] = await Promise.all([TestCollector.start(), startUpstream()]);
    upstream.always(messagesAnswer({ usage: USAGE }));
  });
  after(() => Promise.all([upstream?.stop(), collector?.stop()]));
  beforeEach(() => {
    collector.answers = 200;
    collector.spans.length = 0;
    collector.bodies.length = 0;
    upstream.reset();
    upstream.always(messagesAnswer({ usage: USAGE }));
  });

  /** Starts a gateway with these variables and sends it calls with a client's trace. */
  async function calling(env: NodeJS.ProcessEnv, calls = 1): Promise<TestGateway> {
    const gateway = await startGateway({
      upstreams: { acme: { url: upstream.url } },
      env,
      own: true,
    });
    const { key } = await gateway.newCustomer('10');
    for (let count = 0; count < calls; count += 1) {
      const { status } = await gateway.call(PATH.messages, { key, body: ask(), headers: { traceparent: PARENT } });
      expect(status).to.equal(200);
    }
    return gateway;
  }

  it("are off without a collector, and upstreams do not receive the client's trace", async () => {
    const gateway = await calling({});
    expect(upstream.calls[0]?.headers).to.not.have.property('traceparent');
    expect(await gateway.stop()).to.equal(0);
  });

  for (const [ratio, count] of [
    ['0', 0],
    ['1', 6],
  ] as const)
    it(`have ${count} spans of three calls with the sampling ratio ${ratio}`, async () => {
      const sampler = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: ratio };
      const gateway = await calling({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...sampler }, 3);
      const sampled = upstream.calls.map(({ headers }) => String(headers['traceparent']).endsWith('-01'));
      expect(sampled).to.deep.equal([count > 0, count > 0, count > 0]);
      expect(await gateway.stop()).to.equal(0);
      expect(collector.spans).to.have.lengthOf(count);
    });

  for (const [name, answers] of [
    ['is silent', 'silent'],
    ['answers 500', 500],
  ] as const)
    it(`delay neither calls nor the end of the process if the collector ${name}, and the log says this once`, async () => {
      collector.answers = answers;
      const patience = { OTEL_EXPORTER_OTLP_TIMEOUT: '200', OTEL_BSP_SCHEDULE_DELAY: '10' };
      const gateway = await calling({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...patience }, 3);
      const { key } = await gateway.newCustomer('10');
      await until('two batches have been tried', async () => {
        await gateway.call(PATH.messages, { key, body: ask(), headers: { traceparent: PARENT } });
        return collector.bodies.length > 1;
      });
      await until('it is logged', () => gateway.output().includes('the collector does not accept spans'));
      expect(await gateway.stop()).to.equal(0);
      expect(gateway.output().split('the collector does not accept spans')).to.have.lengthOf(2);
    });

  it('are exported again once an unreachable collector is reachable again, and the log says this', async () => {
    const port = Number(new URL(collector.url).port);
    await collector.stop();
    const patience = { OTEL_EXPORTER_OTLP_TIMEOUT: '200', OTEL_BSP_SCHEDULE_DELAY: '10' };
    const gateway = await calling({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`, ...patience });
    await until('it is logged', () => gateway.output().includes('the collector does not accept spans'));
    collector = await TestCollector.start(port);
    const { key } = await gateway.newCustomer('10');
    await gateway.call(PATH.messages, { key, body: ask() });
    await until('it is logged', () => gateway.output().includes('the collector accepts spans again'));
    await gateway.stop();
    expect(collector.spans).to.have.lengthOf(2);
  });
});
