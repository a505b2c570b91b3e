import { crc32 } from 'node:zlib';
import { type SseFrame, SseSplitter } from '../../core/wire/sse';

/** Encodes a header of a message. All values here are strings. */
function header(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  return Buffer.concat([
    Buffer.from([Buffer.byteLength(name)]),
    Buffer.from(name),
    Buffer.from([7]),
    length,
    Buffer.from(value),
  ]);
}

/** Encodes one message, following Amazon's document of `vnd.amazon.eventstream`. */
export function eventStreamMessage(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const written = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)));
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(8);
  prelude.writeUInt32BE(written.length + body.length + 16, 0);
  prelude.writeUInt32BE(written.length, 4);
  const message = Buffer.concat([prelude, checksum(prelude), written, body]);
  return Buffer.concat([message, checksum(message)]);
}

function checksum(bytes: Buffer): Buffer {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return sum;
}

const EVENT = { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' };

/** Encodes a part of the answer: the event of Messages in base64. */
export function chunkMessage(event: string): Buffer {
  return eventStreamMessage(EVENT, JSON.stringify({ bytes: Buffer.from(event).toString('base64'), p: 'abcd' }));
}

export function exceptionMessage(type: string, message: string): Buffer {
  const headers = { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' };
  return eventStreamMessage(headers, JSON.stringify({ message }));
}

/** Encodes a stream of Messages as Bedrock sends it. */
export function asEventStream(sse: Buffer): Buffer {
  const splitter = new SseSplitter();
  const frames: SseFrame[] = [...splitter.push(sse)];
  const rest = splitter.end();
  if (rest !== undefined) frames.push(rest);
  return Buffer.concat(frames.flatMap(({ data }) => (data === undefined ? [] : [chunkMessage(data)])));
}
