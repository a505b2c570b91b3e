import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that a receiver of webhooks has got. */
export interface Received {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The body, which is an event. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at any shape
  readonly event: any;
}

type Behaviour = (response: ServerResponse, request: IncomingMessage) => void;

export interface Receiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** How many requests it worked on at once, at most. */
  readonly atOnce: number;
  /** How it answers the next requests, one after the other; it answers 200 afterwards. */
  next(...behaviours: readonly Behaviour[]): void;
  reset(): void;
  close(): Promise<void>;
}

export const answer =
  (status: number, headers: Record<string, string> = {}): Behaviour =>
  (response) => {
    response.writeHead(status, headers).end('the body of an answer is ignored');
  };

/** Starts a server on this machine that records the events that it receives. */
export async function startReceiver(): Promise<Receiver> {
  let received: Received[] = [];
  let behaviours: Behaviour[] = [];
  let open = 0;
  let atOnce = 0;
  const server = createServer(async (request, response) => {
    open += 1;
    atOnce = Math.max(atOnce, open);
    response.on('close', () => {
      open -= 1;
    });
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString();
    received.push({ headers: request.headers as Record<string, string>, body, event: JSON.parse(body) });
    (behaviours.shift() ?? answer(200))(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hooks?from=tollgate`,
    get received() {
      return received;
    },
    get atOnce() {
      return atOnce;
    },
    next: (...given) => void behaviours.push(...given),
    reset: () => {
      received = [];
      behaviours = [];
      atOnce = 0;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
