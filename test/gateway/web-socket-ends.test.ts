import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { refusedHandshake, TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { responsesStream } from '../support/upstream';

const TEXT = 0x81;
const PING = 0x89;

describe('The end of a WebSocket', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url, webSocket: true } },
    system: { webSockets: { idle: '1s', life: '3s' } },
  }));

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => {
    upstream.reset();
    upstream.always(responsesStream());
  });

  it('comes after the time of `idle` without a call, and closes the upstream socket too', async () => {
    const socket = await TestSocket.open(gateway, key);
    await socket.call();
    expect(await socket.closed).to.deep.equal({ code: 1001, reason: 'idle' });
    await until('the upstream socket is closed', () => upstream.webSockets.open.size === 0);
  });

  it('comes after the time of `life`, however busy the WebSocket is', async () => {
    const socket = await TestSocket.open(gateway, key);
    let isClosed = false;
    void socket.closed.then(() => (isClosed = true));
    const asking = async (): Promise<void> => {
      while (!isClosed) {
        socket.send(TestSocket.create());
        await Promise.race([socket.answer(), socket.closed]);
      }
    };
    await asking().catch(() => undefined);
    expect((await socket.closed).reason).to.match(/maximum lifetime/);
    await until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
  });

  it('comes to a client that sends a malformed frame, and the process continues', async () => {
    const codes = [];
    for (const bytes of [
      // No mask; text that is not UTF-8; an unknown opcode; a control frame in two parts; an excessive length.
      Buffer.from([TEXT, 2, 0x7b, 0x7d]),
      frame(TEXT, Buffer.from([0xff, 0xfe])),
      frame(0x83, Buffer.from('{}')),
      frame(0x09, Buffer.from('x')),
      Buffer.from([TEXT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    ]) {
      const socket = await raw(gateway, key);
      socket.write(bytes);
      codes.push(await closeCode(socket));
    }
    expect(codes).to.deep.equal([1002, 1007, 1002, 1002, 1009]);
    const socket = await TestSocket.open(gateway, key);
    expect((await socket.call()).at(-1).type).to.equal('response.completed');
    socket.close();
  });

  it('comes to a client that sends pings and reads no pongs', async () => {
    const socket = await raw(gateway, key);
    socket.pause();
    const pings = Buffer.concat(Array.from({ length: 1_000 }, () => frame(PING, Buffer.alloc(125))));
    socket.on('error', () => undefined);
    const ended = new Promise((resolve) => socket.once('close', resolve));
    for (let count = 0; count < 200 && !socket.destroyed; count += 1) socket.write(pings);
    await ended;
    expect((await gateway.call('/healthz', { method: 'GET' })).status).to.equal(200);
  });

  it('comes after the current response when the process stops', async () => {
    const stopping = await startGateway({
      upstreams: { acme: { url: upstream.url, webSocket: true } },
      own: true,
    });
    const customer = await stopping.newCustomer('10');
    const [idle, busy] = [await TestSocket.open(stopping, customer.key), await TestSocket.open(stopping, customer.key)];
    let proceed = (): void => undefined;
    const waits = new Promise<void>((resolve) => (proceed = resolve));
    upstream.next(responsesStream({ waitFor: { before: 5, until: waits } }));
    busy.send(TestSocket.create());
    await until('the response has begun', () => busy.frames.length === 5);
    const stopped = stopping.stop();
    expect(await idle.closed).to.deep.equal({ code: 1001, reason: 'the process stops' });
    expect((await refusedHandshake(stopping, customer.key)).json.error.code).to.equal('DRAINING');
    proceed();
    const events = await busy.answer();
    expect(events.at(-1)).to.include({ type: 'response.completed' });
    expect(events.at(-1).response.usage.cost).to.equal(0.000105);
    expect((await busy.closed).code).to.equal(1001);
    expect(await stopped).to.equal(0);
  });
});

/** Returns a frame of a client: its head, a mask of zeros, and its bytes. */
function frame(head: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([head, 0x80 + bytes.length, 0, 0, 0, 0]), bytes]);
}

/** Opens a connection and makes the handshake, for bytes that no client library would send. */
async function raw(gateway: TestGateway, key: string): Promise<Socket> {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  const head = [
    'GET /v1/responses HTTP/1.1',
    'host: localhost',
    `authorization: Bearer ${key}`,
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${Buffer.alloc(16).toString('base64')}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString('latin1')).to.match(/^HTTP\/1\.1 101 /);
  return socket;
}

async function closeCode(socket: Socket): Promise<number> {
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return bytes.readUInt16BE(2);
}
