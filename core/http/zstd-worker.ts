/** The thread of zstd-by-thread.ts. */
import { parentPort } from 'node:worker_threads';
import type { FromZstdThread, ZstdJob } from './zstd-by-thread';

/** The decoder returns empty pieces forever if the bytes are broken. */
const MOST_EMPTY_PIECES = 64;

const FRAME = 0xfd2fb528;
const REPEATED_BLOCK = 1;

/**
 * Checks that the bytes are one frame (RFC 8878, section 3), because newer versions of Node decode only one.
 * @throws RangeError
 */
function checkOneFrame(bytes: Buffer): void {
  if (bytes.readUInt32LE(0) !== FRAME) throw new RangeError('there is no frame');
  if (endOfFrame(bytes, 4) !== bytes.length) throw new RangeError('the body has bytes after its last zstd frame');
}

function endOfFrame(bytes: Buffer, start: number): number {
  const descriptor = bytes.readUInt8(start);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] as number;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] as number;
  let at = start + 1 + (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes;
  for (let isLast = false; !isLast; ) {
    const head = bytes.readUIntLE(at, 3);
    isLast = (head & 1) === 1;
    at += 3 + (((head >> 1) & 3) === REPEATED_BLOCK ? 1 : head >> 3);
  }
  return at + ((descriptor & 4) === 0 ? 0 : 4);
}

const decoder = import('zstddec/stream').then(async ({ ZSTDDecoder }) => {
  const made = new ZSTDDecoder();
  await made.init();
  return made;
});

function post(message: FromZstdThread): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', async ({ encoded, mostBytes }: ZstdJob) => {
  try {
    checkOneFrame(Buffer.concat(encoded));
    const pieces = (await decoder).decodeStreaming(encoded);
    let decodedBytes = 0;
    let empty = 0;
    for (const piece of pieces) {
      empty = piece.length === 0 ? empty + 1 : 0;
      if (empty > MOST_EMPTY_PIECES) throw new Error('the body is not valid zstd');
      decodedBytes += piece.length;
      if (piece.length > 0) post({ piece });
      if (decodedBytes > mostBytes) return post('too large');
    }
    post('whole');
  } catch (error) {
    post({ broken: String(error) });
  }
});
