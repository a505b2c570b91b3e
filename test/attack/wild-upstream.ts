import { type AddressInfo, createServer, type Socket } from 'node:net';
import { chatEvents } from '../../demo/dialects/chat';
import { messagesEvents } from '../../demo/dialects/messages';
import type { Random } from '../support/random';
import { answerOf } from '../support/scripts/answer';

const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const COMMENT = chunkOf(`: ${'x'.repeat(16_000)}\n\n`);
const MAX_FLOOD_BYTES = 8 * 1_048_576;
const FLOOD_TEXTS = Array.from({ length: 400 }, () => 'words '.repeat(2_000));

type Behaviour = (socket: Socket, random: Random, isChat: boolean) => void;

/** Behaviours of upstreams that are broken or malicious. */
const BEHAVIOURS: readonly Behaviour[] = [
  (socket, random) => socket.end(`HTTP/1.1 ${String(random.below(1_000)).padStart(3, '0')} Said\r\n\r\n{}`),
  (socket, random) => socket.end(latin1(`HTTP/1.1 200 O${String.fromCharCode(random.below(256))}K\r\n\r\n{}`)),
  (socket) => socket.end('HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\nhello'),
  (socket) => writeForEver(socket, 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'),
  (socket) => {
    socket.write(STREAM_HEAD);
    writeForEver(socket, COMMENT);
  },
  (socket, _random, isChat) => {
    socket.write(STREAM_HEAD);
    for (const event of eventsOf(isChat, FLOOD_TEXTS)) socket.write(chunkOf(event));
    socket.end('0\r\n\r\n');
  },
  (socket, random, isChat) => {
    const events = eventsOf(isChat, ['one ', 'two']).join('');
    socket.write(STREAM_HEAD);
    socket.write(chunkOf(events.slice(0, random.below(events.length))));
    if (random.below(2) === 0) socket.resetAndDestroy();
    else socket.end();
  },
  (socket, _random, isChat) => {
    socket.write(STREAM_HEAD);
    const [first = '', second = '', third = '', fourth = ''] = eventsOf(isChat, ['one ', 'two']);
    socket.write(chunkOf(first + second + third + fourth));
  },
  (socket) => socket.resetAndDestroy(),
  () => undefined,
];

/** Starts an upstream that answers each connection with another fault. */
export async function startWildUpstream(random: Random): Promise<{ readonly url: string; stop(): void }> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    socket.once('data', (head) => random.pick(BEHAVIOURS)(socket, random, head.includes('/chat/')));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/** Writes as fast as the other side reads, until it closes or a limit is reached. */
function writeForEver(socket: Socket, bytes: string): void {
  let left = MAX_FLOOD_BYTES;
  const go = () => {
    while (left > 0 && !socket.destroyed) {
      left -= bytes.length;
      if (!socket.write(bytes)) return void socket.once('drain', go);
    }
    socket.destroy();
  };
  go();
}

function eventsOf(isChat: boolean, texts: readonly string[]): readonly string[] {
  const answer = answerOf({ texts }, isChat ? 'chatcmpl' : 'msg');
  return isChat ? chatEvents(answer, true) : messagesEvents(answer);
}

function chunkOf(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function latin1(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}
