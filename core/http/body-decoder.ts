import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { fail, type GatewayError } from '../errors';
import { ZstdByThread } from './zstd-by-thread';

/** The content encodings in which the body of a call may come. */
export const BODY_ENCODINGS = ['gzip', 'deflate', 'br', 'zstd'] as const;
export type BodyEncoding = (typeof BODY_ENCODINGS)[number];

/** A body may always be decoded to this size. Above it, to at most `MOST_RATIO` times the bytes that were received. */
export const FREE_DECODED_BYTES = 1_048_576;
const MOST_RATIO = 100;

/** Takes encoded bytes and gives decoded ones. */
export interface BodyDecoder extends Transform {
  /** How many of the encoded bytes belong to the data that has been decoded. */
  readonly bytesWritten: number;
}

/** The type definitions of Node 20 lack it, and so does Node 20. */
const { createZstdDecompress } = zlib as { createZstdDecompress?: () => BodyDecoder };

/**
 * Returns the encoding that a request's head names; undefined for a body that comes as it is.
 * @throws UNSUPPORTED_MEDIA_TYPE for an encoding that is not `accepted`, and for several
 */
export function bodyEncoding(
  { headers }: IncomingMessage,
  accepted: readonly BodyEncoding[],
): BodyEncoding | undefined {
  const named = headers['content-encoding']?.trim().toLowerCase();
  if (named === undefined || named === 'identity') return undefined;
  const plain = named === 'x-gzip' ? 'gzip' : named;
  const encoding = accepted.find((each) => each === plain);
  if (encoding === undefined) throw unsupported(accepted);
  return encoding;
}

function unsupported(accepted: readonly BodyEncoding[]): GatewayError {
  if (accepted.length === 0)
    return fail('UNSUPPORTED_MEDIA_TYPE', {
      message: 'The body must not be compressed. Send it without `content-encoding`.',
    });
  const names = accepted.join(', ');
  const message = `\`content-encoding\` must be one of ${names}, or absent; a body encoded twice is not accepted.`;
  return fail('UNSUPPORTED_MEDIA_TYPE', { message, headers: { 'accept-encoding': names } });
}

/** Opens a decoder that gives 128 KB at most at a time. It may stop, without an end, after more than `maxBytes`. */
export function openDecoder(encoding: BodyEncoding, maxBytes: number): BodyDecoder {
  switch (encoding) {
    case 'gzip':
      return zlib.createGunzip();
    case 'deflate':
      return zlib.createInflate();
    case 'br':
      return zlib.createBrotliDecompress();
    case 'zstd':
      return createZstdDecompress?.() ?? new ZstdByThread((received) => Math.min(maxBytes, mostDecodedBytes(received)));
  }
}

/** Returns the most decoded bytes that this number of received bytes may give. */
function mostDecodedBytes(receivedBytes: number): number {
  return Math.max(FREE_DECODED_BYTES, MOST_RATIO * receivedBytes);
}

/** Checks the decoded size of a body. @throws BODY_TOO_LARGE */
export function checkExpansion(receivedBytes: number, decodedBytes: number): void {
  if (decodedBytes > mostDecodedBytes(receivedBytes))
    throw fail('BODY_TOO_LARGE', {
      message: `The decoded body is more than ${MOST_RATIO} times larger than the compressed one.`,
    });
}

/** INVALID_FIELD for bytes that are broken, end too early, or have something behind their end. */
export function brokenBody(encoding: BodyEncoding, cause?: unknown): GatewayError {
  const message = `The body is not complete and valid ${encoding}, which \`content-encoding\` declares.`;
  return fail('INVALID_FIELD', { param: 'content-encoding', message, cause });
}
