import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';

/** A server on this machine that nothing may reach. */
export interface Canary {
  /** Its address with its port. */
  readonly host: string;
  /** The text of all its answers. */
  readonly word: string;
  connections(): number;
  stop(): Promise<void>;
}

export async function startCanary(): Promise<Canary> {
  const word = 'the canary has answered';
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined);
    socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${word.length}\r\nconnection: close\r\n\r\n${word}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    word,
    connections: () => connections,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
