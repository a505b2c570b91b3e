import { connect } from 'node:net';
import { cut, mutateBytes } from '../mutate';
import type { Target } from './target';

const PATHS = [
  '/v1/messages',
  '/v1/chat/completions',
  '/v1/models',
  '/readyz',
  '/openapi.json',
  '/v1/sandboxes',
  '/console',
  '/%00',
];
const MAX_MS = 1_500;

/** Sends HTTP heads and bodies byte by byte. Any refusal is a valid answer. */
export const heads: Target = {
  name: 'heads',
  summary: 'bytes on the public listener',
  isOfGateway: true,
  run: async ({ gateway, key }, random) => {
    const body = JSON.stringify({ model: 'm', max_tokens: 1, messages: [] });
    const sample = [
      `${random.pick(['GET', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'CONNECT'])} ${random.pick(PATHS)} HTTP/1.1`,
      'host: 127.0.0.1',
      `x-api-key: ${key}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      '',
      body,
    ].join('\r\n');
    await send(Number(new URL(gateway.url).port), cut(random, mutateBytes(random, Buffer.from(sample))));
  },
};

/** Sends the pieces. Resolves when the gateway has closed the connection, or after a timeout. */
export function send(port: number, pieces: readonly Buffer[]): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      for (const piece of pieces) socket.write(piece);
      socket.end();
    });
    socket.setTimeout(MAX_MS, () => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    socket.resume();
  });
}
