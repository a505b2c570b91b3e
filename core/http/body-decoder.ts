import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { fail, GatewayError } from '../base/errors';
import { MAX_WINDOW_LOG, ZstdByThread, type ZstdRefusal } from './zstd-by-thread';

/** The content encodings that the gateway accepts for the body of a call. */
export const BODY_ENCODINGS = ['gzip', 'deflate', 'br', 'zstd'] as const;
export type BodyEncoding = (typeof BODY_ENCODINGS)[number];

/** The size in bytes to which any encoded body may decode. Above it, the limit is `MAX_RATIO` times the received bytes. */
export const FREE_DECODED_BYTES = 1_048_576;
const MAX_RATIO = 100;

/** The encoding of a request body, and the account of the client that sends the body. */
export interface EncodedBody {
  readonly encoding: BodyEncoding;
  readonly accountId: string;
}

/** A stream that decodes the bytes of an encoded body. */
export interface BodyDecoder extends Transform {
  /** How many encoded bytes the decoder has processed. */
  readonly bytesWritten: number;
}

/** Node 20 and its type definitions have no zstd decoder, so it is declared here. */
const { createZstdDecompress } = zlib as {
  createZstdDecompress?: (options: { readonly params: Readonly<Record<number, number>> }) => BodyDecoder;
};
/** The number of the decoder's parameter `ZSTD_d_windowLogMax`. */
const WINDOW_LOG_MAX = 100;

/** What opens a decoder for each encoding that requests and answers may have. */
export const DECODERS: ReadonlyMap<string, () => BodyDecoder> = new Map([
  ['gzip', zlib.createGunzip],
  ['x-gzip', zlib.createGunzip],
  ['deflate', zlib.createInflate],
  ['br', zlib.createBrotliDecompress],
]);

/**
 * Returns the encoding in the `content-encoding` header; undefined if the body is not encoded.
 * @throws UNSUPPORTED_MEDIA_TYPE for an encoding that is not `accepted`, and for more than one
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

/**
 * Opens a decoder that outputs at most 128 KB at a time. After `maxBytes` decoded bytes, it may stop without reporting an end. If the
 * decoder is shared and bodies wait for it, their accounts take turns.
 */
export function openDecoder({ encoding, accountId }: EncodedBody, maxBytes: number): BodyDecoder {
  return (
    DECODERS.get(encoding)?.() ??
    createZstdDecompress?.({ params: { [WINDOW_LOG_MAX]: MAX_WINDOW_LOG } }) ??
    new ZstdByThread(accountId, (received) => Math.min(maxBytes, maxDecodedBytes(received)))
  );
}

/** Returns the most decoded bytes that a body of this many received bytes may have. */
function maxDecodedBytes(receivedBytes: number): number {
  return Math.max(FREE_DECODED_BYTES, MAX_RATIO * receivedBytes);
}

/** Checks the decoded size of a body against the received bytes. @throws BODY_TOO_LARGE */
export function checkExpansion(receivedBytes: number, decodedBytes: number): void {
  if (decodedBytes > maxDecodedBytes(receivedBytes))
    throw fail('BODY_TOO_LARGE', {
      message: `The decoded body is more than ${MAX_RATIO} times larger than the compressed one.`,
    });
}

const REFUSED: Readonly<Record<ZstdRefusal, string>> = {
  ZSTD_error_frameParameter_windowTooLarge:
    'The zstd body needs a window of more than 8 MB. Compress it at a lower level, and without a long window.',
  TOO_MANY_BLOCKS: 'The zstd body has more than 65536 blocks. Flush its compressor less often.',
};

/**
 * Returns INVALID_FIELD for bytes that are broken, end too early, continue after the end of the data, or would cost too much to
 * decode.
 */
export function brokenBody(encoding: BodyEncoding, cause?: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  const { code } = (cause ?? {}) as { readonly code?: ZstdRefusal };
  const refused = code === undefined ? undefined : REFUSED[code];
  const message = refused ?? `The body is not complete and valid ${encoding}, which \`content-encoding\` declares.`;
  return fail('INVALID_FIELD', { param: 'content-encoding', message, cause });
}
