/** The code of the thread that zstd-by-thread.ts starts. */
import { parentPort } from 'node:worker_threads';
import type { FromZstdThread, ZstdJob, ZstdRefusal } from './zstd-by-thread';

/** After this many empty pieces decoding stops, because the decoder returns empty pieces forever if the bytes are broken. */
const MAX_EMPTY_PIECES = 64;

const FRAME = 0xfd2fb528;
const REPEATED_BLOCK = 1;

/** The most blocks of a zstd frame, because even an empty block costs time. A compressor makes blocks of 128 KB, or smaller ones if its input pauses. */
const MAX_BLOCKS = 65_536;

/**
 * Checks that the bytes are exactly one zstd frame (RFC 8878, section 3). Newer versions of Node, which decode zstd themselves, accept only
 * one frame, too.
 * @throws RangeError, Refused
 */
function checkOneFrame(bytes: Buffer, maxWindowBytes: number): void {
  if (bytes.readUInt32LE(0) !== FRAME) throw new RangeError('the body does not begin with a zstd frame');
  if (endOfFrame(bytes, 4, maxWindowBytes) !== bytes.length)
    throw new RangeError('the body has bytes after its last zstd frame');
}

/** The error for a zstd frame (the compressed unit of a body) that would cost too much to decode. It is thrown before the decoder receives the frame. */
class Refused extends Error {
  constructor(readonly code: ZstdRefusal) {
    super(code);
  }
}

function endOfFrame(bytes: Buffer, start: number, maxWindowBytes: number): number {
  const descriptor = bytes.readUInt8(start);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] as number;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] as number;
  let at = start + 1 + (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes;
  const windowBytes = isSingleSegment ? contentSize(bytes, at - sizeBytes, sizeBytes) : windowSize(bytes[start + 1]);
  if (windowBytes > maxWindowBytes) throw new Refused('ZSTD_error_frameParameter_windowTooLarge');
  let blocks = 0;
  for (let isLast = false; !isLast; ) {
    blocks += 1;
    if (blocks > MAX_BLOCKS) throw new Refused('TOO_MANY_BLOCKS');
    const head = bytes.readUIntLE(at, 3);
    isLast = (head & 1) === 1;
    at += 3 + (((head >> 1) & 3) === REPEATED_BLOCK ? 1 : head >> 3);
  }
  return at + ((descriptor & 4) === 0 ? 0 : 4);
}

function windowSize(descriptor = 0): number {
  return 2 ** (10 + (descriptor >> 3)) * (1 + (descriptor & 7) / 8);
}

function contentSize(bytes: Buffer, at: number, sizeBytes: number): number {
  if (sizeBytes === 8) return Number(bytes.readBigUInt64LE(at));
  return bytes.readUIntLE(at, sizeBytes) + (sizeBytes === 2 ? 256 : 0);
}

const decoder = import('zstddec/stream').then(async ({ ZSTDDecoder }) => {
  const made = new ZSTDDecoder();
  await made.init();
  return made;
});

function post(message: FromZstdThread): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', async ({ encoded, maxBytes, maxWindowBytes }: ZstdJob) => {
  try {
    const started = await decoder;
    post('begun');
    checkOneFrame(Buffer.concat(encoded), maxWindowBytes);
    const pieces = started.decodeStreaming(encoded);
    let decodedBytes = 0;
    let empty = 0;
    for (const piece of pieces) {
      empty = piece.length === 0 ? empty + 1 : 0;
      if (empty > MAX_EMPTY_PIECES) throw new Error('the body is not valid zstd');
      decodedBytes += piece.length;
      if (piece.length > 0) post({ piece });
      if (decodedBytes > maxBytes) return post('too large');
    }
    post('whole');
  } catch (error) {
    post(error instanceof Refused ? { refused: error.code } : { broken: String(error) });
  }
});
