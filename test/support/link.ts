import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/** A forwarded port that can be cut like a network: bytes that were sent and have not arrived are lost. */
export interface Link {
  readonly port: number;
  /** Blocks both directions, without closing connections. */
  cut(): void;
  /** Blocks both directions of the existing connections, without closing them. */
  silence(): void;
  /** Directs new connections to another port; existing ones stay. */
  turnTo(port: number): void;
  mend(): void;
  stop(): Promise<void>;
}

export async function linkTo(port: number): Promise<Link> {
  const pairs = new Set<readonly [Socket, Socket]>();
  const silent = new WeakSet<Socket>();
  let isCut = false;
  let target = port;
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    const pair = [near, far] as const;
    pairs.add(pair);
    for (const [one, other] of [pair, [far, near] as const]) {
      one.on('data', (bytes: Buffer) => void (isCut || silent.has(one) || other.write(bytes)));
      one.on('error', () => undefined);
      one.on('close', () => {
        pairs.delete(pair);
        other.destroy();
      });
    }
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const end = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
    },
    silence: () => {
      for (const pair of pairs) for (const socket of pair) silent.add(socket);
    },
    turnTo: (other) => {
      target = other;
    },
    mend: () => {
      isCut = false;
      end(); // Both sides retry lost bytes on a new connection.
    },
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        end();
      }),
  };
}
