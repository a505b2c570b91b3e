import { request } from 'node:http';
import { mutateBytes } from '../mutate';
import { GOOD_ANSWER } from '../rig';
import { send } from './heads';
import type { Target } from './target';

const UPGRADED =
  'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n\r\n\x81\x05hello';

/** Sends answers of a customer's server in a sandbox: any status line, header and body. */
export const answers: Target = {
  name: 'answers',
  summary: 'HTTP answers of servers in sandboxes',
  isOfGateway: true,
  run: async ({ gateway, port }, random) => {
    const answer = mutateBytes(random, Buffer.from(GOOD_ANSWER)).subarray(0, 8_000).toString('base64');
    await new Promise<void>((resolve) => {
      const asked = request(gateway.url + port.url, { headers: { ...port.headers, 'x-answer': answer }, agent: false });
      asked.setTimeout(5_000, () => asked.destroy());
      asked.on('response', (response) => response.on('error', () => undefined).resume());
      asked.on('error', () => undefined);
      asked.on('close', () => resolve());
      asked.end();
    });
  },
};

/** Opens WebSockets to a sandbox's server, with broken frames from both sides. */
export const frames: Target = {
  name: 'frames',
  summary: 'WebSocket upgrades and frames through a port of a sandbox',
  isOfGateway: true,
  run: async ({ gateway, port }, random) => {
    const answer = mutateBytes(random, Buffer.from(UPGRADED, 'latin1')).subarray(0, 8_000).toString('base64');
    const head = [
      `GET ${port.url} HTTP/1.1`,
      'host: 127.0.0.1',
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version: 13',
      ...Object.entries(port.headers).map(([name, value]) => `${name}: ${value}`),
      `x-answer: ${answer}`,
    ];
    const frame = mutateBytes(random, Buffer.from([0x81, 0x85, 1, 2, 3, 4, 0x69, 0x67, 0x6f, 0x68, 0x6e]));
    await send(Number(new URL(gateway.url).port), [Buffer.from(`${head.join('\r\n')}\r\n\r\n`), frame]);
  },
};
