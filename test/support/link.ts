import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/** A way to a port of this machine that can be cut, as a network is: what was sent and has not arrived is lost. */
export interface Link {
  readonly port: number;
  /** Nothing comes through in either direction, and nobody is told. */
  cut(): void;
  /** Connections that are made from now on lead to another port; those there are stay. */
  turnTo(port: number): void;
  mend(): void;
  stop(): Promise<void>;
}

export async function linkTo(port: number): Promise<Link> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isCut = false;
  let target = port;
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    const pair = [near, far] as const;
    pairs.add(pair);
    for (const [one, other] of [pair, [far, near] as const]) {
      one.on('data', (bytes: Buffer) => void (isCut || other.write(bytes)));
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
    turnTo: (other) => {
      target = other;
    },
    mend: () => {
      isCut = false;
      end(); // What was lost on the way is asked for again on a new connection.
    },
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        end();
      }),
  };
}
