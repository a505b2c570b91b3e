import { createServer } from 'node:net';

/** The first port, below the range of outgoing connections, so that none of these takes it. */
const FIRST = 15_000;
const COUNT = 15_000;

/** Returns a loopback port that was free a moment ago. Simultaneous requests get different ports. */
export async function freePort(): Promise<number> {
  const port = FIRST + Math.floor(Math.random() * COUNT);
  return (await isFree(port)) ? port : freePort();
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
