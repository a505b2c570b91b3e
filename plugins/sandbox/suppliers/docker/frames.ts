import type { Readable } from 'node:stream';
import type { OutputFrame } from '../supplier';

const HEADER_BYTES = 8;
const STDERR = 2;

/**
 * Yields the frames of the engine's multiplexed stream. Each has a header (stream, three zeros, length as big-endian uint32) and
 * that many bytes. Bytes are yielded as they arrive, before their frame is complete. A stream may end in the middle of a frame.
 */
export async function* readFrames(stream: Readable): AsyncGenerator<OutputFrame> {
  let header: Buffer = Buffer.alloc(0);
  let left = 0;
  for await (const piece of stream as AsyncIterable<Buffer>) {
    let rest = piece;
    while (rest.length > 0) {
      if (left === 0) {
        const missing = HEADER_BYTES - header.length;
        header = Buffer.concat([header, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (header.length < HEADER_BYTES) break;
        left = header.readUInt32BE(4);
        if (left > 0) continue;
      } else {
        const bytes = rest.subarray(0, left);
        rest = rest.subarray(bytes.length);
        left -= bytes.length;
        yield { stream: header[0] === STDERR ? 'stderr' : 'stdout', bytes };
      }
      if (left === 0) header = Buffer.alloc(0);
    }
  }
}
