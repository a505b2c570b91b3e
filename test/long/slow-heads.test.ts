import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { ask } from '../support/calls';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

describe('Clients that send the heads of their requests slowly', () => {
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    upstream.always(messagesAnswer());
    const system = { connections: { maxPerAddress: 2_100 } };
    return { upstreams: { acme: { url: upstream.url } }, system };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });

  it('are disconnected, all 2,000 of them at each listener, while other clients are served', async () => {
    const head = 'POST /v1/messages HTTP/1.1\r\nHost: x\r\ncontent-type: application/json\r\nx-slow: ';
    const sockets: Socket[] = [];
    for (const url of [gateway.url, gateway.adminUrl]) sockets.push(...(await openSockets(url, 2_000, head)));
    const opened = Date.now();
    const dripping = setInterval(() => {
      for (const socket of sockets) if (!socket.destroyed) socket.write('a');
    }, 2_000);
    try {
      let open = sockets.length;
      for (const socket of sockets) socket.once('close', () => (open -= 1));
      let served = 0;
      await until(
        'all are closed',
        async () => {
          const answer = await gateway.call('/v1/messages', { key, body: ask() });
          expect(answer.status, answer.text).to.equal(200);
          served += 1;
          return open === 0;
        },
        40_000,
      );
      expect(served).to.be.above(5);
      // The gateway allows 10 s for a head and looks every second. The rest is for a busy machine.
      expect(Date.now() - opened).to.be.below(25_000);
    } finally {
      clearInterval(dripping);
      for (const socket of sockets) socket.destroy();
    }
  });
});

async function openSockets(url: string, count: number, bytes: string): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let opened = 0; opened < count; opened += 100) {
    const some = Array.from({ length: 100 }, () => connect(Number(new URL(url).port), '127.0.0.1'));
    await Promise.all(
      some.map((socket) => {
        socket.on('error', () => undefined);
        socket.resume();
        return new Promise<void>((ready) => socket.once('connect', () => socket.write(bytes, () => ready())));
      }),
    );
    sockets.push(...some);
  }
  return sockets;
}
