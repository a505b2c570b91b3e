import { connect, type Socket } from 'node:net';
import type { TestGateway } from './gateway';
import { until } from './until';

/** A client with its own connection that can disconnect or stop reading when the test says. */
export class LeavingClient {
  text = '';
  readonly #socket: Socket;

  constructor({ url }: Pick<TestGateway, 'url'>, path: string, key: string, body: object | string) {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const head = [`POST ${path} HTTP/1.1`, 'Host: x', `x-api-key: ${key}`, 'content-type: application/json'];
    this.#socket = connect(Number(new URL(url).port), '127.0.0.1');
    this.#socket.write(`${head.join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
    this.#socket.on('error', () => undefined);
    this.#socket.on('data', (chunk) => (this.text += chunk.toString()));
  }

  /** Waits until the gateway has sent this text. */
  async sees(words: string): Promise<void> {
    await until(`the client sees ${words}`, () => this.text.includes(words));
  }

  stopReading(): void {
    this.#socket.pause();
  }

  readOn(): void {
    this.#socket.resume();
  }

  leave(): void {
    this.#socket.destroy();
  }
}
