import { expect } from 'chai';
import { ask } from '../support/calls';
import { type Answered, MODEL } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { linesOf, readMetrics } from '../support/metrics';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import {
  embeddingsAnswer,
  messagesAnswer,
  messagesFailure,
  messagesStream,
  neverAnswer,
  responsesStream,
} from '../support/upstream';

/** The cost of a call in USD: 10 × 3 + 5 × 15 per million. */
const COST = 0.000105;
const MADE_UP = 'model-that-a-client-made-up';

describe('A call that has ended', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  const broken = useUpstream();
  let customer: { accountId: string; keyId: string; key: string };

  const gateway = useGateway(() => {
    const embeds = { context: 8_192, maxOutput: 0, estimatedMaxTokens: 0, price: { input: 1, output: 0 } };
    return {
      upstreams: {
        acme: {
          url: upstream.url,
          adapter: ['messages', 'chat', 'responses', 'embeddings'],
          models: { [MODEL]: {}, embed: embeds },
        },
        broken: { url: broken.url, tier: 'official' },
        sockets: { url: upstream.url, webSocket: true, models: { 'over-socket': {} } },
      },
      system: { ejection: { consecutiveFailures: 1_000 } },
      configure: (config) => setPolicy(config, 'reserve-settle', { onClientAbort: 'drain' }, 'cost'),
    };
  });
  beforeEach(async () => {
    upstream.reset();
    broken.reset();
    broken.always(messagesFailure(500));
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
    customer = await gateway.newCustomer('10');
  });

  const lineOf = (requestId: unknown, message = 'call') =>
    until(`the line of ${requestId}`, () => linesOf(gateway, message).find((line) => line['requestId'] === requestId));

  /** Runs calls and returns how much each sample has grown. The gateway reads an upstream for 10 s after its client disconnected. */
  async function grown(work: () => Promise<unknown>): Promise<(name: string) => number> {
    const before = await readMetrics(gateway);
    await work();
    const noCall = async () => (await readMetrics(gateway)).get('tollgate_calls_in_flight') === 0;
    await until('no call is open', noCall, 20_000);
    const after = await readMetrics(gateway);
    return (name) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  }

  const calls = (labels: { strategy?: string; status: string; code?: string; route?: string; protocol?: string }) => {
    const { route = '/v1/messages', protocol = 'messages', strategy = 'quality', status, code = 'none' } = labels;
    return `tollgate_calls_total{route="${route}",protocol="${protocol}",strategy="${strategy}",status="${status}",code="${code}"}`;
  };
  const idOf = ({ headers }: Answered) => headers['x-svc-request-id'];

  it('is counted once in the metrics, and has one log line with its charge', async () => {
    let answer: Answered | undefined;
    const more = await grown(async () => {
      answer = await gateway.call('/v1/messages', { key: customer.key, body: ask() });
    });
    expect(answer?.status).to.equal(200);
    expect(more(calls({ status: '2xx' }))).to.equal(1);
    const ofCall = '{route="/v1/messages",protocol="messages",strategy="quality"}';
    expect(more(`tollgate_call_duration_seconds_count${ofCall}`)).to.equal(1);
    expect(more(`tollgate_call_added_seconds_count${ofCall}`)).to.equal(1);
    expect(more(`tollgate_call_first_token_seconds_count${ofCall}`)).to.equal(0);
    const ofModel = `{model="${MODEL}",upstream="acme"`;
    expect(more(`tollgate_tokens_total${ofModel},meter="input"}`)).to.equal(10);
    expect(more(`tollgate_tokens_total${ofModel},meter="output"}`)).to.equal(5);
    expect(more(`tollgate_cost_usd_total${ofModel}}`)).to.be.closeTo(COST, 1e-12);
    expect(more(`tollgate_upstream_cost_usd_total${ofModel}}`)).to.be.closeTo(COST, 1e-12);
    const { accountId, keyId } = customer;
    expect(more(`tollgate_account_calls_total{account="${accountId}"}`)).to.equal(1);
    expect(more(`tollgate_account_tokens_total{account="${accountId}",direction="output"}`)).to.equal(5);
    expect(more(`tollgate_account_cost_usd_total{account="${accountId}"}`)).to.be.closeTo(COST, 1e-12);
    const { ms, addedMs, time, ...line } = await lineOf(answer && idOf(answer));
    expect(line).to.deep.equal({
      level: 30,
      requestId: answer && idOf(answer),
      method: 'POST',
      route: '/v1/messages',
      strategy: 'quality',
      keyId,
      accountId,
      model: MODEL,
      upstream: 'acme',
      attempts: 2,
      stream: false,
      status: 200,
      inputTokens: 10,
      outputTokens: 5,
      billing: 'actual',
      costUsd: '0.00010500',
      msg: 'call',
    });
    expect(Number(addedMs)).to.be.within(0, Number(ms) + 1);
    expect(new Date(String(time)).toISOString()).to.equal(time);
    expect(linesOf(gateway, 'call').filter(({ requestId }) => requestId === line['requestId'])).to.have.length(1);
  });

  it('is counted with its time to the first content if it was a stream', async () => {
    upstream.always(messagesStream({ usage: { input: 10, output: 5 } }));
    let answer: Answered | undefined;
    const more = await grown(async () => {
      answer = await gateway.call('/v1/messages', { key: customer.key, body: ask({ stream: true }) });
    });
    const ofCall = '{route="/v1/messages",protocol="messages",strategy="quality"}';
    expect(more(`tollgate_call_first_token_seconds_count${ofCall}`)).to.equal(1);
    const line = await lineOf(answer && idOf(answer));
    expect(line).to.include({ stream: true, costUsd: '0.00010500' });
    expect(line['firstTokenMs']).to.be.a('number');
  });

  it('is counted and logged like any other if it came over a WebSocket', async () => {
    upstream.always(responsesStream());
    const socket = await TestSocket.open(gateway, customer.key);
    const more = await grown(() => socket.call({ model: 'over-socket' }));
    socket.socket.close();
    expect(more(calls({ route: '/v1/responses', protocol: 'responses', status: '2xx' }))).to.equal(1);
    const line = await until('its line', () => linesOf(gateway, 'call').find(({ webSocket }) => webSocket === true));
    expect(line).to.include({ route: '/v1/responses', model: 'over-socket', status: 200, stream: true });
  });

  it('is logged with input tokens and no output tokens if it was a call for embeddings', async () => {
    upstream.always(embeddingsAnswer());
    const answer = await gateway.call('/v1/embeddings', {
      key: customer.key,
      body: { model: 'embed', input: 'Hello' },
    });
    expect(answer.status).to.equal(200);
    expect(await lineOf(idOf(answer))).to.include({ route: '/v1/embeddings', model: 'embed', outputTokens: 0 });
  });

  const REFUSED: readonly [
    string,
    number,
    string,
    string,
    (customer: { key: string; keyId: string }) => Promise<Answered>,
  ][] = [
    [
      'without a valid key',
      401,
      'INVALID_API_KEY',
      'none',
      () => gateway.call('/v1/messages', { key: 'sk-svc-made-up', body: ask() }),
    ],
    [
      'without money',
      402,
      'INSUFFICIENT_BALANCE',
      'quality',
      async () => gateway.call('/v1/messages', { key: (await gateway.newCustomer('0')).key, body: ask() }),
    ],
    [
      'for an unknown model',
      400,
      'MODEL_NOT_PRICED',
      'quality',
      ({ key }) => gateway.call('/v1/messages', { key, body: ask({ model: MADE_UP }) }),
    ],
    [
      'for which all upstreams fail',
      502,
      'ALL_PROVIDERS_FAILED',
      'quality',
      ({ key }) => {
        upstream.always(messagesFailure(500));
        return gateway.call('/v1/messages', { key, body: ask() });
      },
    ],
  ];
  for (const [how, status, code, strategy, call] of REFUSED) {
    it(`${how} is counted and logged as ${code}, and costs nothing`, async () => {
      let answer: Answered | undefined;
      const more = await grown(async () => {
        answer = await call(customer);
      });
      expect(answer?.status).to.equal(status);
      expect(more(calls({ strategy, status: `${Math.floor(status / 100)}xx`, code }))).to.equal(1);
      const line = await lineOf(answer && idOf(answer));
      expect(line).to.include({ status, code, msg: 'call' });
      expect(line['costUsd'] ?? '0.00000000').to.equal('0.00000000');
    });
  }

  it('is counted as aborted, with its kind of billing, if its client disconnected', async () => {
    upstream.always(neverAnswer());
    broken.always(neverAnswer());
    const left = '"aborted":true';
    const before = gateway.output().split(left).length;
    const more = await grown(async () => {
      const client = new LeavingClient(gateway, '/v1/messages', customer.key, ask({ stream: true }));
      await broken.call(1);
      const metrics = await readMetrics(gateway);
      expect(metrics.get('tollgate_ledger_holds')).to.equal(1);
      const { heldUsd } = await gateway.balance(customer.key);
      expect(Number(heldUsd)).to.be.above(0);
      expect(metrics.get('tollgate_ledger_held_usd')).to.equal(Number(heldUsd));
      client.leave();
    });
    expect((await readMetrics(gateway)).get('tollgate_ledger_held_usd')).to.equal(0);
    expect(more('tollgate_calls_aborted_total{billing="partial"}')).to.equal(1);
    expect(more(calls({ status: '4xx', code: 'CLIENT_LEFT' }))).to.equal(1);
    await until('its line is there', () => gateway.output().split(left).length === before + 1);
  });

  it('is counted with its whole usage if the gateway read its stream to the end after the client disconnected', async () => {
    let proceed = (): void => undefined;
    const released = new Promise<void>((resolve) => (proceed = resolve));
    upstream.always(
      messagesStream({
        texts: ['one ', 'two '],
        usage: { input: 10, output: 5 },
        waitFor: { before: 4, until: released },
      }),
    );
    const more = await grown(async () => {
      const client = new LeavingClient(gateway, '/cost/v1/messages', customer.key, ask({ stream: true }));
      await client.sees('one ');
      expect((await readMetrics(gateway)).get('tollgate_streams_open')).to.equal(1);
      client.leave();
      proceed();
    });
    expect(more('tollgate_calls_aborted_total{billing="actual"}')).to.equal(1);
    expect(more(`tollgate_tokens_total{model="${MODEL}",upstream="acme",meter="output"}`)).to.equal(5);
  });

  it("is counted separately from requests to the gateway's own API, which are counted by route", async () => {
    const { key, keyId } = customer;
    let counted: Answered | undefined;
    const more = await grown(async () => {
      counted = await gateway.call('/v1/messages/count_tokens', { key, body: ask() });
      await gateway.call('/v1/models', { method: 'GET', key });
      await gateway.call(`/v1/sandboxes/${MADE_UP}`, { method: 'GET', key });
      await gateway.call(`/${MADE_UP}`, { method: 'GET', key });
    });
    const requests = (route: string, method: string, status: string, code: string) =>
      more(`tollgate_api_requests_total{route="${route}",method="${method}",status="${status}",code="${code}"}`);
    expect(requests('/v1/models', 'GET', '2xx', 'none')).to.equal(1);
    expect(requests('other', 'GET', '4xx', 'NOT_FOUND')).to.equal(1);
    const code = counted?.json.error.code;
    const route = '/v1/messages/count_tokens';
    expect(requests(route, 'POST', '4xx', code)).to.equal(1);
    expect(await lineOf(counted && idOf(counted), 'request')).to.include({ route, status: counted?.status, code });
    const sandbox = await until('the line', () =>
      linesOf(gateway, 'request').find(({ route }) => String(route).startsWith('/v1/sandboxes/{')),
    );
    expect(sandbox).to.include({ method: 'GET', keyId, status: 404 });
  });
});
