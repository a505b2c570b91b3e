import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { ask } from '../support/calls';
import { readMetrics } from '../support/metrics';
import { setPolicy } from '../support/policy-settings';
import { statusOf } from '../support/raw';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, messagesStream } from '../support/upstream';

const CLIENT_IDLE_MS = 1_000;

/** The number of pieces. Their 12 MB are more than the buffers between an upstream and a client that does not read. */
const PIECES = 192;
const PIECE_BYTES = 64 * 1024;
const LONG = messagesStream({ texts: Array.from({ length: PIECES }, () => 'x'.repeat(PIECE_BYTES)) });

describe('A slow client', () => {
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url, models: { 'acme-large': { maxOutput: 10_000_000 } } } },
    system: { clientIdle: `${CLIENT_IDLE_MS}ms` },
    configure: (config) => setPolicy(config, 'model-request', { slowBodyTimeout: '1200ms' }, 'quality'),
  }));
  let key: string;
  const sockets: Socket[] = [];

  before(async () => {
    ({ key } = await gateway.newCustomer('1000'));
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
  });
  beforeEach(() => upstream.reset());

  /** Begins a call whose body has this length, and sends the given part of it. */
  const begin = (length: number, body: string): Socket => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    const head = ['POST /v1/messages HTTP/1.1', 'Host: x', `x-api-key: ${key}`, 'content-type: application/json'];
    socket.write(`${head.join('\r\n')}\r\ncontent-length: ${length}\r\n\r\n${body}`);
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  };
  const stream = () => {
    const body = JSON.stringify(ask({ stream: true, max_tokens: 9_000_000 }));
    return begin(body.length, body);
  };
  const record = (status: number): Promise<Record<string, unknown>> =>
    until(`the record of ${status} is there`, async () => {
      const { items } = (await gateway.call(`/v1/usage?status=${status}`, { method: 'GET', key })).json;
      return items[0];
    });
  const nothingIsHeld = () =>
    until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000');

  it('gets 408 if its body arrives byte by byte; the gateway calls no upstream and takes no hold', async () => {
    const socket = begin(100_000, '{"model":');
    const dripping = setInterval(() => socket.write(' '), 50);
    let answer = '';
    try {
      for await (const chunk of socket) {
        answer += String(chunk);
        if (answer.includes('}}')) break;
      }
    } finally {
      clearInterval(dripping);
    }
    expect(statusOf(answer)).to.equal(408);
    expect(answer)
      .to.include('"code":"BODY_TIMEOUT"')
      .and.match(/x-svc-source: platform/i);
    expect(upstream.calls).to.have.length(0);
    const refused = { errorCode: 'BODY_TIMEOUT', billing: 'released', cost: '0.00000000', attempts: 0 };
    expect(await record(408)).to.include(refused);
    await nothingIsHeld();
  });

  it('is treated as disconnected if it reads nothing of its stream, and pays what the upstream reports', async () => {
    upstream.always(LONG);
    const socket = stream();
    socket.pause();
    await (await upstream.call(1)).ended;
    await nothingIsHeld();
    expect(await record(200)).to.include({ status: 200, billing: 'actual', errorCode: null, outputTokens: 5 });
    socket.resume();
    await until('its connection is closed', () => socket.closed);
  });

  it('is treated as disconnected if it reads nothing of an unstreamed answer, whose memory is then freed', async () => {
    upstream.always(messagesAnswer({ texts: ['x'.repeat(PIECES * PIECE_BYTES)] }));
    const body = JSON.stringify(ask());
    const socket = begin(body.length, body);
    socket.pause();
    const bufferedBytes = async () => (await readMetrics(gateway)).get('tollgate_buffered_bytes') ?? Number.NaN;
    await until('the answer waits', async () => (await bufferedBytes()) >= PIECES * PIECE_BYTES);
    await until('the answer waits no more', async () => (await bufferedBytes()) === 0);
    expect(await record(200)).to.include({ billing: 'actual', errorCode: null });
    socket.resume();
    await until('its connection is closed', () => socket.closed);
  });

  it('is served to the end if it keeps reading, however slowly', async () => {
    upstream.always(LONG);
    const startedMs = performance.now();
    let end = '';
    for await (const chunk of stream()) {
      end = end.slice(-100) + String(chunk);
      if (end.includes('message_stop')) break;
      await sleep(6);
    }
    expect(end).to.include('message_stop');
    expect(performance.now() - startedMs).to.be.above(CLIENT_IDLE_MS);
    await nothingIsHeld();
  });

  it('is not treated as disconnected while its upstream sends nothing', async () => {
    const waitFor = { before: 4, until: sleep(1.5 * CLIENT_IDLE_MS) };
    upstream.always(messagesStream({ texts: ['one ', 'two ', 'three'], waitFor }));
    const answer = await gateway.call('/v1/messages', { key, body: ask({ stream: true }) });
    expect(answer.text).to.include('three').and.include('message_stop');
  });
});
