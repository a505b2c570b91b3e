import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import WebSocket from 'ws';
import { askIn } from './calls';
import type { TestGateway } from './gateway';
import { until } from './until';

// biome-ignore lint/suspicious/noExplicitAny: tests look at any shape
export type Frame = any;

const LAST = new Set(['response.completed', 'response.incomplete', 'response.failed', 'error']);

interface SocketOptions {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  /** The authority of the gateway's certificate. */
  readonly ca?: string;
}

/** A client of the gateway's WebSocket. */
export class TestSocket {
  /** All received frames, parsed. */
  readonly frames: Frame[] = [];
  readonly pings: Buffer[] = [];
  /** Resolves when the socket is closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  #read = 0;
  static #created = 0;

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data) => this.frames.push(JSON.parse(String(data))));
    socket.on('ping', (data) => this.pings.push(data));
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) =>
      socket.once('close', (code, reason) => resolve({ code, reason: String(reason) })),
    );
  }

  static async open(gateway: TestGateway, key: string, options: SocketOptions = {}): Promise<TestSocket> {
    const client = new TestSocket(dial(gateway, key, options));
    await once(client.socket, 'open');
    return client;
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  /** Makes the frame of a small, valid call, which is no repetition of another one. Members have the names of Messages. */
  static create(more: Record<string, unknown> = {}): Record<string, unknown> {
    TestSocket.#created += 1;
    return { type: 'response.create', event_id: `event_${TestSocket.#created}`, ...askIn('responses', more) };
  }

  /** Sends one call and waits for its last event. Returns its events. */
  async call(more: Record<string, unknown> = {}): Promise<Frame[]> {
    this.send(TestSocket.create(more));
    return this.answer();
  }

  /** Returns the events up to the next last one. */
  async answer(): Promise<Frame[]> {
    const end = await until('the last event of an answer', () => {
      const at = this.frames.findIndex(({ type }, index) => index >= this.#read && LAST.has(type));
      return at === -1 ? undefined : at + 1;
    });
    const events = this.frames.slice(this.#read, end);
    this.#read = end;
    return events;
  }

  /** Sends a frame and returns the error event that answers it. */
  async refusal(frame: unknown): Promise<Frame> {
    this.send(frame);
    return (await this.answer()).at(-1);
  }

  close(): void {
    this.socket.close();
  }
}

/** Returns the HTTP answer to a refused handshake. */
export async function refusedHandshake(
  gateway: TestGateway,
  key: string | undefined,
  options: SocketOptions = {},
): Promise<{ readonly status: number; readonly json: Frame }> {
  const socket = dial(gateway, key, options);
  socket.on('error', () => undefined);
  const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  const json = JSON.parse(await text(answer)) as Frame;
  socket.terminate();
  return { status: answer.statusCode ?? 0, json };
}

function dial(gateway: TestGateway, key: string | undefined, options: SocketOptions) {
  const { path = '/v1/responses', headers = {}, ca } = options;
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return new WebSocket(`${gateway.url.replace('http', 'ws')}${path}`, {
    headers: { ...authorization, ...headers },
    perMessageDeflate: false,
    ...(ca !== undefined && { ca }),
  });
}
