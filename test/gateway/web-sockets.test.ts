import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { MODEL } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { refusedHandshake, TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { responsesFailure, responsesStream } from '../support/upstream';
import { OVER_SOCKET } from '../support/upstream-sockets';

/** The cost of a call in USD: 10 × 3 + 5 × 15 per million. */
const COST = 0.000105;
/** Timeouts that are longer than tests delay streams. */
const LONG = { connect: '2s', headers: '10s', idle: '60s' };
const BETA = 'responses_websockets=2026-02-06';

/** Four refused calls. They differ because fast refusals for the same reason are summed up in one record. */
const REFUSED = [
  [{ model: 'unknown' }, 400, 'MODEL_NOT_PRICED'],
  [{ max_tokens: 'many' }, 400, 'INVALID_FIELD'],
  [{ background: true }, 400, 'NOT_SUPPORTED'],
  [{ max_tokens: 8_192 }, 402, 'INSUFFICIENT_BALANCE'],
] as const;

describe('A WebSocket of Responses calls', function () {
  this.timeout(120_000);
  const best = useUpstream();
  const other = useUpstream();
  const plain = useUpstream();
  let key: string;
  let keyId: string;

  const gateway = useGateway(() => ({
    upstreams: {
      best: { url: best.url, tier: 'official', webSocket: true, timeouts: LONG },
      other: { url: other.url, webSocket: true },
      plain: { url: plain.url, models: { plain: {} } },
    },
    system: { ejection: { consecutiveFailures: 100 } },
    configure: (config) => setPolicy(config, 'sse-relay', { keepAlive: '100ms' }, 'speed'),
  }));
  beforeEach(async () => {
    for (const upstream of [best, other, plain]) {
      upstream.reset();
      upstream.always(responsesStream());
      await until('sockets of the story before are closed', () => upstream.webSockets.open.size === 0);
    }
    ({ key, keyId } = await gateway.newCustomer('10'));
  });

  const told = async (work: (socket: TestSocket) => Promise<void>, options = {}) => {
    const socket = await TestSocket.open(gateway, key, options);
    try {
      await work(socket);
    } finally {
      socket.close();
      await socket.closed;
    }
  };

  const records = async () =>
    (await gateway.call('/v1/usage?limit=1000', { method: 'GET', key })).json.items as Record<string, unknown>[];

  const charged = async () => 10 - Number((await gateway.balance(key)).balanceUsd);

  for (const [name, model, upstreamOf] of [
    ['with WebSocket', MODEL, () => best],
    ['without WebSocket', 'plain', () => plain],
  ] as const)
    it(`serves 50 calls although 20 calls between them are refused, at an upstream ${name}`, async () => {
      const upstream = upstreamOf();
      ({ key } = await gateway.newCustomer('0.1'));
      const before = upstream.webSockets.handshakes.length;
      await told(async (socket) => {
        for (let count = 0; count < 70; count += 1) {
          if (count % 7 < 5) {
            const events = await socket.call({ model });
            expect(events.at(-1).response.usage.cost).to.equal(COST);
            continue;
          }
          const [more, status, code] = REFUSED[count % REFUSED.length] ?? [];
          const refused = await socket.refusal(TestSocket.create({ model, ...more }));
          expect([refused.status, refused.error.code]).to.deep.equal([status, code]);
        }
      });
      const all = await until(
        'all records exist',
        async () => {
          const found = await records();
          return found.length === 70 ? found : undefined;
        },
        30_000,
      );
      expect(all.filter(({ billing }) => billing === 'actual')).to.have.lengthOf(50);
      expect(all.reduce((sum, { cost }) => sum + Number(cost), 0)).to.be.closeTo(50 * COST, 1e-9);
      const { balanceUsd, heldUsd } = await gateway.balance(key);
      expect([balanceUsd, heldUsd]).to.deep.equal(['0.09475000', '0.00000000']);
      expect(upstream.calls).to.have.lengthOf(50);
      expect(upstream.webSockets.handshakes.length - before).to.equal(upstream === best ? 1 : 0);
    });

  it("works with the official client, and relays the upstream's events", async () => {
    const script = responsesStream({ texts: ['Hello', ' there'] });
    best.always(script);
    const socket = new ResponsesWS(new OpenAI({ apiKey: key, baseURL: `${gateway.url}/v1` }));
    const seen: string[] = [];
    let said = '';
    socket.on('event', (event) => seen.push(event.type));
    socket.on('response.output_text.delta', ({ delta }) => (said += delta));
    const done = new Promise((resolve) => socket.once('response.completed', resolve));
    socket.send({ type: 'response.create', model: MODEL, input: 'Hello', store: false });
    await done;
    socket.close();
    expect(said).to.equal('Hello there');
    expect(seen).to.deep.equal(script.events.map((event) => /^event: (.*)$/m.exec(event)?.[1]));
  });

  it('records its calls with the session that the handshake names', async () => {
    const headers = { 'x-session-id': 'task-1' };
    await told(
      async (socket) => {
        await socket.call();
        await socket.call({ model: 'plain' });
      },
      { headers },
    );
    await told(async (socket) => void (await socket.call()), { headers: { 'x-session-id': 'task-2' } });
    const found = await until('both records exist', async () => {
      const { json } = await gateway.call('/v1/usage?session=task-1', { method: 'GET', key });
      return json.items.length === 2 ? (json.items as Record<string, unknown>[]) : undefined;
    });
    const [last, first] = found;
    expect(last).to.include({
      upstream: 'plain',
      strategy: 'quality',
      attempts: 1,
      fallback: false,
      cost: '0.00010500',
    });
    expect(first).to.include({ upstream: 'best', cost: '0.00010500' });
    expect([last?.['requestId'], first?.['requestId']].every((id) => /^req_[0-9a-f]{24}$/.test(String(id)))).to.equal(
      true,
    );
  });

  it('forwards a body unchanged, over WebSocket or HTTP as the upstream supports', async () => {
    await told(
      async (socket) => {
        const body = `"input":[{"role":"user","content":"a  b" }] , "unknown_one":true,"store":false`;
        socket.send(`{"type":"response.create","model":"${MODEL}",${body}}`);
        await socket.answer();
        socket.send(`{ "model":"plain",${body},"type":"response.create"}`);
        await socket.answer();
      },
      { headers: { 'openai-beta': `assistants=v2, ${BETA}` } },
    );
    const [over] = best.calls;
    expect(String(over?.body)).to.equal(
      `{"model":"${MODEL}","input":[{"role":"user","content":"a  b" }] , "unknown_one":true,"store":false,"type":"response.create"}`,
    );
    expect(best.webSockets.handshakes.at(-1)).to.include({
      authorization: 'Bearer the-platforms-own-credential',
      'openai-beta': BETA,
    });
    const [posted] = plain.calls;
    expect(String(posted?.body)).to.equal(
      `{ "model":"plain","input":[{"role":"user","content":"a  b" }] , "unknown_one":true,"store":false,"stream":true}`,
    );
    expect(posted?.headers).to.not.have.property(OVER_SOCKET);
    expect(String(posted?.headers['openai-beta'] ?? '')).to.not.contain('responses_websockets');
  });

  it('can be opened on the direct route to an upstream', () =>
    told(
      async (socket) => {
        await socket.call();
        expect(other.calls).to.have.lengthOf(1);
        const refused = await socket.refusal(TestSocket.create({ model: 'plain' }));
        expect(refused.error.code).to.equal('MODEL_NOT_SUPPORTED');
      },
      { headers: { host: 'other.p.localhost' } },
    ));

  it('is refused at the handshake if none of its calls could be answered', async () => {
    const refusals = await Promise.all([
      refusedHandshake(gateway, undefined),
      refusedHandshake(gateway, `${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`),
      refusedHandshake(gateway, key, { path: '/v1/chat/completions' }),
      refusedHandshake(gateway, key, { path: '/fast/v1/responses' }),
      refusedHandshake(gateway, key, { headers: { host: 'other.p.elsewhere.test' } }),
    ]);
    expect(refusals.map(({ status, json }) => [status, json.error.code])).to.deep.equal([
      [401, 'INVALID_API_KEY'],
      [401, 'INVALID_API_KEY'],
      [405, 'METHOD_NOT_ALLOWED'],
      [404, 'NOT_FOUND'],
      [404, 'NOT_FOUND'],
    ]);
  });

  it('is refused if its API key already has eight open ones', async () => {
    const sockets = await Promise.all(Array.from({ length: 8 }, () => TestSocket.open(gateway, key)));
    const ninth = await refusedHandshake(gateway, key);
    expect([ninth.status, ninth.json.error.code, ninth.json.error.details]).to.deep.equal([
      429,
      'CONCURRENCY_LIMIT',
      { of: 'key', limit: 8 },
    ]);
    sockets[0]?.close();
    await sockets[0]?.closed;
    const again = await until('there is room again', () => TestSocket.open(gateway, key));
    for (const socket of [...sockets, again]) socket.close();
    await Promise.all([...sockets, again].map(({ closed }) => closed));
  });

  it('serves one response at a time, and answers errors to frames in the meantime', () =>
    told(async (socket) => {
      let proceed = (): void => undefined;
      const waits = new Promise<void>((resolve) => (proceed = resolve));
      best.next(responsesStream({ waitFor: { before: 5, until: waits } }));
      socket.send(TestSocket.create());
      await until('the response has begun', () => socket.frames.length === 5);
      socket.send(TestSocket.create());
      socket.send({ type: 'response.cancel', response_id: 'resp_1' });
      await until('both are refused', () => socket.frames.length === 7);
      proceed();
      await until('the first is whole', () => socket.frames.at(-1).type === 'response.completed');
      const errors = socket.frames.filter(({ type }) => type === 'error');
      expect(errors.map(({ status, error: { code, param } }) => [status, code, param])).to.deep.equal([
        [409, 'CONFLICT', null],
        [400, 'INVALID_FIELD', 'type'],
      ]);
      expect(best.calls).to.have.lengthOf(1);
    }));

  it('answers errors to frames that are not calls, and stays open', () =>
    told(async (socket) => {
      const codes = [];
      for (const frame of ['{"type":', '[]', '{}', '{"type":"response.cancel"}', '{"type":"a","type":"b"}'])
        codes.push((await socket.refusal(frame)).error.code);
      socket.socket.send(Buffer.from('{}'), { binary: true });
      codes.push((await socket.answer()).at(-1).error.code);
      expect(codes).to.deep.equal(['INVALID_JSON', ...Array.from({ length: 5 }, () => 'INVALID_FIELD')]);
      expect((await socket.call()).at(-1).type).to.equal('response.completed');
      await until('the call alone has a record', async () => (await records()).length === 1);
    }));

  it('checks the API key, the model and the balance at each call', () =>
    told(async (socket) => {
      await socket.call();
      const change = (body: unknown) => gateway.admin('PATCH', `/admin/v1/keys/${keyId}`, body);
      expect((await change({ allowedModels: ['plain'] })).status).to.equal(200);
      const codes = [(await socket.refusal(TestSocket.create())).error.code];
      await change({ allowedModels: null, balanceLimit: '0.0001' });
      codes.push((await socket.refusal(TestSocket.create())).error.code);
      await change({ balanceLimit: null });
      await socket.call();
      await gateway.admin('DELETE', `/admin/v1/keys/${keyId}`);
      const revoked = await socket.refusal(TestSocket.create());
      codes.push(revoked.error.code);
      expect(codes).to.deep.equal(['MODEL_NOT_ALLOWED', 'KEY_LIMIT_EXCEEDED', 'INVALID_API_KEY']);
      expect(revoked.status).to.equal(401);
      expect(socket.socket.readyState).to.equal(1);
    }));

  it('stays with the upstream that answered its first call', () =>
    told(async (socket) => {
      best.next(responsesFailure(429, {}, { 'retry-after': '0' }));
      await socket.call();
      await socket.call();
      expect([best.calls.length, other.calls.length]).to.deep.equal([1, 2]);
      other.next(responsesStream({ cut: 'reset', cutAfter: 2 }), responsesStream({ cut: 'reset', cutAfter: 2 }));
      const [failed] = (await socket.call()).slice(-1);
      expect([failed.status, failed.error.code]).to.deep.equal([502, 'ALL_PROVIDERS_FAILED']);
      expect(best.calls).to.have.lengthOf(1);
      await socket.call();
      expect(await charged()).to.be.closeTo(3 * COST, 1e-9);
    }));

  it('accepts the ids of answers that it has delivered', () =>
    told(async (socket) => {
      best.next(responsesStream({ id: 'resp_one' }));
      await socket.call();
      await socket.call({ previous_response_id: 'resp_one' });
      expect(best.calls.at(-1)?.json).to.include({ previous_response_id: 'resp_one' });
      const unknown = await socket.refusal(TestSocket.create({ previous_response_id: 'resp_two' }));
      expect([unknown.status, unknown.error.code, unknown.error.param]).to.deep.equal([
        400,
        'previous_response_not_found',
        'previous_response_id',
      ]);
      for (const each of best.webSockets.open) each.terminate();
      await until('the gateway has seen it', async () => {
        const gone = await socket.refusal(TestSocket.create({ previous_response_id: 'resp_one' }));
        return gone.error?.code === 'previous_response_not_found';
      });
      expect((await socket.call()).at(-1).type).to.equal('response.completed');
    }));

  it('prepares an answer (`generate: false`) only at upstreams with WebSocket, because others would generate the answer', () =>
    told(async (socket) => {
      const refused = await socket.refusal(TestSocket.create({ model: 'plain', generate: false }));
      expect([refused.status, refused.error.code, refused.error.param]).to.deep.equal([
        400,
        'NOT_SUPPORTED',
        'generate',
      ]);
      expect(plain.calls).to.be.empty;
      await socket.call({ generate: false });
      expect(best.calls.at(-1)?.json).to.include({ generate: false });
    }));

  for (const [name, model, upstreamOf] of [
    ['with WebSocket', MODEL, () => best],
    ['without WebSocket', 'plain', () => plain],
  ] as const)
    it(`is charged like a stream if its client closes it in the middle, at an upstream ${name}`, async () => {
      upstreamOf().next(responsesStream({ texts: ['a', 'b'], delayMs: 200 }));
      const socket = await TestSocket.open(gateway, key);
      socket.send(TestSocket.create({ model }));
      await until('the response has begun', () => socket.frames.length >= 5);
      socket.socket.terminate();
      const [record] = await until('the record is there', async () => {
        const found = await records();
        return found.length === 1 ? found : undefined;
      });
      expect(record).to.include({ billing: 'actual', cost: '0.00010500' });
      await until('the upstream socket is closed', () => best.webSockets.open.size === 0);
    });

  it('accepts a frame of 20 MB, and is closed at a larger one', async () => {
    const frame = (bytes: number) => {
      const [head, tail] = [`{"type":"response.create","model":"plain","store":false,"input":"`, '"}'];
      return head + 'x'.repeat(bytes - head.length - tail.length) + tail;
    };
    const socket = await TestSocket.open(gateway, key);
    socket.send(frame(20_971_520));
    expect((await socket.answer()).at(-1).type).to.equal('response.completed');
    socket.send(frame(20_971_521));
    expect((await socket.closed).code).to.equal(1009);
  });

  it('is closed if its frames would need more memory than an account may use', async () => {
    const sockets = await Promise.all(Array.from({ length: 4 }, () => TestSocket.open(gateway, key)));
    for (const { socket } of sockets) socket.send('x'.repeat(19_000_000), { fin: false });
    const { code } = await Promise.race(sockets.map(({ closed }) => closed));
    const refusals = sockets.flatMap(({ frames }) => frames.map(({ error }) => error.code));
    expect([code, refusals]).to.deep.equal([1013, ['OVERLOADED']]);
    for (const socket of sockets) socket.socket.terminate();
    await Promise.all(sockets.map(({ closed }) => closed));
  });

  it('keeps no frames in memory that a client sends during a response', () =>
    told(async (socket) => {
      let proceed = (): void => undefined;
      const waits = new Promise<void>((resolve) => (proceed = resolve));
      best.next(responsesStream({ waitFor: { before: 5, until: waits } }));
      socket.send(TestSocket.create());
      await until('the response has begun', () => socket.frames.length === 5);
      const before = await residentBytes(gateway.pid);
      const frame = JSON.stringify({ type: 'response.create', input: 'x'.repeat(1_000_000) });
      for (let count = 0; count < 150; count += 1) {
        socket.send(frame);
        if (count % 10 === 9)
          await until(
            'they are refused',
            () => socket.frames.filter(({ type }) => type === 'error').length === count + 1,
            20_000,
          );
      }
      expect((await residentBytes(gateway.pid)) - before).to.be.below(100_000_000);
      proceed();
      await until('the response is whole', () => socket.frames.at(-1).type === 'response.completed');
    }));
});

/** Returns the resident memory of a process in bytes. */
async function residentBytes(pid: number): Promise<number> {
  const [, pages = '0'] = (await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ');
  return Number(pages) * 4_096;
}
