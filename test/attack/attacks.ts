import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { addresses } from '../fuzz/targets/addresses';
import { bodies } from '../fuzz/targets/bodies';
import { events } from '../fuzz/targets/events';
import { heads } from '../fuzz/targets/heads';
import { answers, frames } from '../fuzz/targets/ports';
import { requestTargets } from '../fuzz/targets/request-targets';
import type { Target } from '../fuzz/targets/target';
import { ask } from '../support/calls';
import { MODEL } from '../support/gateway';
import type { Random } from '../support/random';
import { HONEST_MODEL, LARGE_ID, LARGE_MODEL, type Scene, WILD_MODEL } from './scene';

/** One way to overload the gateway. It is repeated, and each round takes some seconds at most. */
export interface Attack<On = Scene> {
  readonly name: string;
  run(scene: On, random: Random): Promise<void>;
}

/** What an attack on the public listener needs of a gateway. */
export type Front = Pick<Scene, 'connect' | 'rich' | 'penniless' | 'sandboxId'>;

const MAX_BYTES = 20 * 1_048_576;
const MADE_UP_PATHS = 10_000;
const MADE_UP_CONNECTIONS = 10;

export const FRONT_ATTACKS: readonly Attack<Front>[] = [
  {
    name: 'unfinished heads',
    run: (scene) => holdOpen(scene, 200, 'POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-a: ', 8_000),
  },
  {
    name: 'announced bodies',
    run: async (scene) => {
      const announced = (key: string) => postHead('/v1/messages', key, MAX_BYTES);
      await Promise.all([scene.penniless, scene.rich].map((key) => holdOpen(scene, 13, `${announced(key)}{`, 5_000)));
    },
  },
  {
    name: 'whole bodies of 20 MB',
    run: async (scene) => {
      const paths = ['/v1/messages', `/v1/sandboxes/${scene.sandboxId}/commands`];
      await Promise.all(paths.map((path) => post(scene, path, scene.rich, Buffer.alloc(MAX_BYTES, ' '))));
    },
  },
  { name: 'JSON that is slow to read', run: (scene, random) => postBomb(scene, random.pick(BOMBS)) },
  {
    name: 'refused calls',
    run: async (scene) => {
      const keys = [scene.penniless, `sk-svc-${'0'.repeat(48)}`];
      const calls = Array.from({ length: 40 }, (_, index) => callOnce(scene, keys[index % 2] ?? '', MODEL));
      await Promise.all([...calls, ...Array.from({ length: 10 }, () => get(scene, '/readyz'))]);
    },
  },
  {
    name: 'many calls at once',
    run: async (scene) => {
      await Promise.all(Array.from({ length: 150 }, () => callOnce(scene, scene.rich, WILD_MODEL)));
    },
  },
  {
    name: 'clients that read nothing, or leave',
    run: async (scene, random) => {
      const clients = Array.from({ length: 20 }, async () => {
        const socket = await openCall(scene, scene.rich, WILD_MODEL, true);
        socket.pause();
        await pause(random.below(4_000));
        socket.destroy();
      });
      await Promise.all(clients);
    },
  },
  {
    name: `${MADE_UP_PATHS} made-up paths`,
    run: async (scene, random) => {
      const path = () => `/v1/${random.below(2 ** 32).toString(36)}/${random.below(2 ** 32).toString(36)}`;
      const head = () => `GET ${path()} HTTP/1.1\r\nhost: x\r\n\r\n`;
      const askOneByOne = async () => {
        const socket = await scene.connect();
        let left = MADE_UP_PATHS / MADE_UP_CONNECTIONS;
        socket.write(head());
        for await (const _ of socket) {
          left -= 1;
          if (left === 0) break;
          socket.write(head());
        }
      };
      // The gateway may close a connection at any time.
      const connections = Array.from({ length: MADE_UP_CONNECTIONS }, () => askOneByOne().catch(() => undefined));
      await Promise.all(connections);
    },
  },
];

export const ATTACKS: readonly Attack[] = [
  ...FRONT_ATTACKS,
  {
    name: 'commands and followers',
    run: async (scene) => {
      const path = `/v1/sandboxes/${scene.sandboxId}/commands`;
      const command = JSON.stringify({ command: 'yes | head -c 1000000; sleep 2', background: true });
      const begun = await Promise.all(Array.from({ length: 10 }, () => post(scene, path, scene.key, command)));
      const [id] = begun.flatMap((answer) => /"commandId":"([^"]+)"/.exec(answer)?.[1] ?? []);
      const follow = `GET ${path}/${id}/logs?follow=true HTTP/1.1\r\nhost: x\r\nx-api-key: ${scene.key}\r\n\r\n`;
      await holdOpen(scene, 30, follow, 3_000);
    },
  },
  {
    name: 'many turns of one role',
    run: async (scene, random) => {
      const turns = random.pick([19_000, 40_000, 250_000]);
      const messages = Array.from({ length: turns }, () => ({ role: 'user', content: 'a' }));
      await postTranslated(scene, messages);
    },
  },
  {
    name: 'long ids and 300,000 parts',
    run: async (scene, random) => {
      const id = '.'.repeat(random.pick([512, 4_000_000]));
      const tool_calls = [{ id, type: 'function', function: { name: 'a', arguments: '{}' } }];
      await postTranslated(scene, [
        { role: 'user', content: 'a' },
        { role: 'assistant', tool_calls },
        { role: 'tool', tool_call_id: id, content: 'a' },
      ]);
      const parts = Array.from({ length: 300_000 }, () => ({ type: 'text', text: 'a' }));
      await postTranslated(scene, [{ role: 'user', content: parts }]);
      const body = JSON.stringify({ model: HONEST_MODEL, max_tokens: 1, messages: [{ role: 'user', content: parts }] });
      await post(scene, '/v1/messages', scene.rich, body);
    },
  },
  {
    name: 'answers in one piece that no client reads',
    run: async (scene) => {
      const body = JSON.stringify({ model: LARGE_MODEL, input: 'Hello' });
      await holdOpen(scene, 12, postHead('/v1/responses', scene.rich, body.length) + body, 8_000);
    },
  },
  {
    name: 'stored responses that no client reads',
    run: (scene) => {
      const request = `GET /v1/responses/${LARGE_ID} HTTP/1.1\r\nhost: x\r\nx-api-key: ${scene.rich}\r\n\r\n`;
      return holdOpen(scene, 12, request.repeat(10), 5_000);
    },
  },
  ...[heads, requestTargets, addresses, bodies, events, answers, frames].map(mutated),
];

/** Sends a call of Chat to an upstream that speaks Messages. It is translated, or refused by name. */
async function postTranslated(scene: Scene, messages: readonly object[]): Promise<void> {
  const body = JSON.stringify({ model: HONEST_MODEL, max_tokens: 10, messages });
  const answer = await post(scene, '/v1/chat/completions', scene.rich, body);
  // An answer may be cut off, or the account may have too many calls.
  const isExpected =
    answer === '' || /^HTTP\/1.1 (200|402|429|503) /.test(answer) || answer.includes('NOT_TRANSLATABLE');
  if (!isExpected) throw new Error(`a long call was answered with ${answer.slice(0, 500)}`);
}

/** Makes an attack from the fuzzer's input, with many cases at once. */
function mutated(target: Target): Attack {
  return {
    name: `mutated: ${target.summary}`,
    run: async (scene, random) => {
      for (let each = 0; each < 10; each += 1) await target.run(scene, random);
    },
  };
}

/** Bodies of at most 8 MB that are slow to parse, validate or report. */
const BOMBS: readonly (() => string)[] = [
  () => `{${Array.from({ length: 550_000 }, (_, index) => `"k${index}":0`).join(',')}}`,
  () => '['.repeat(8_000_000),
  () => `{"command":"true","env":{${Array.from({ length: 280_000 }, (_, index) => `"K${index}":""`).join(',')}}}`,
  () => `{"command":"${'\\u0041'.repeat(1_300_000)}"}`,
  () => JSON.stringify({ metadata: { a: 'a.'.repeat(8_000) }, selection: {}, idempotencyKey: 'bomb' }),
];

async function postBomb(scene: Front, bomb: () => string): Promise<void> {
  const body = bomb();
  const paths = [`/v1/sandboxes/${scene.sandboxId}/commands`, '/v1/sandboxes', '/v1/messages'];
  for (const path of paths) await post(scene, path, scene.rich, body);
}

/** Opens this many connections, sends the same on each and keeps them open for a while. */
async function holdOpen(scene: Front, count: number, sent: string, forMs: number): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: count }, () => scene.connect()));
  for (const socket of sockets) socket.write(sent);
  await pause(forMs);
  for (const socket of sockets) socket.destroy();
}

function postHead(path: string, key: string, bytes: number): string {
  const lines = [`POST ${path} HTTP/1.1`, 'host: x', `x-api-key: ${key}`, 'content-type: application/json'];
  return `${[...lines, `content-length: ${bytes}`, 'connection: close'].join('\r\n')}\r\n\r\n`;
}

/** Returns the answer to a body, which may arrive while the body is still being sent. */
async function post(scene: Front, path: string, key: string, body: string | Buffer): Promise<string> {
  const socket = await scene.connect();
  socket.write(postHead(path, key, Buffer.byteLength(body)));
  socket.write(body);
  return answerOn(socket);
}

async function get(scene: Front, path: string): Promise<string> {
  const socket = await scene.connect();
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  return answerOn(socket);
}

async function openCall(scene: Front, key: string, model: string, stream: boolean): Promise<Socket> {
  const socket = await scene.connect();
  const body = JSON.stringify(ask({ model, stream }));
  socket.write(postHead('/v1/messages', key, Buffer.byteLength(body)) + body);
  return socket;
}

async function callOnce(scene: Front, key: string, model: string): Promise<string> {
  return answerOn(await openCall(scene, key, model, false));
}

async function answerOn(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => {
    if (text.length < 10_000) text += chunk.toString('latin1');
  });
  socket.setTimeout(10_000, () => socket.destroy());
  if (!socket.closed) await once(socket, 'close').catch(() => undefined);
  return text;
}
