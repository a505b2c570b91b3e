import type { IncomingMessage } from 'node:http';
import { fail } from '../base/errors';
import {
  type BodyDecoder,
  type BodyEncoding,
  bodyEncoding,
  brokenBody,
  checkExpansion,
  type EncodedBody,
  openDecoder,
} from './body-decoder';
import { BodyPace, PACE_LIMITS, type PaceLimits } from './body-pace';
import { type BodyRoom, SMALL_BODY_BYTES } from './buffered-bytes';
import { ClientLeft } from './client-left';
import { JsonError } from './json-scanner';

export interface BodyLimits extends PaceLimits {
  readonly maxBytes: number;
}

/** Checks a body while it arrives, and throws if the body is invalid. A `JsonScanner` is such a checker. */
export interface BodyLook {
  feed(chunk: Buffer): void;
  finish(): void;
}

interface BodyReading {
  readonly limits: BodyLimits;
  readonly room: BodyRoom;
  /** The encoding and the account of an encoded body; undefined if the body is not encoded. */
  readonly encoded?: EncodedBody | undefined;
  /** Checks the body's bytes while they arrive; undefined if they are not checked. */
  readonly look?: BodyLook | undefined;
  /** Runs once per body, before the gateway reads more than `SMALL_BODY_BYTES` of it. If the returned promise rejects, the body is rejected. */
  readonly beforeLarge?: () => Promise<void>;
  /** Reports that the client has disconnected, if the request's own events do not report it. */
  readonly call?: { readonly hasLeft: boolean; onLeave(listener: () => void): () => void };
}

/** Returns the limits for one body of the gateway's own API. */
export function ownLimits(maxBytes: number): BodyLimits {
  return { ...PACE_LIMITS, maxBytes };
}

/**
 * How many bytes are checked before other calls get a turn. Up to 2 MB of a fast client can be read at once. Scanning them would take 50 ms
 * for expensive JSON.
 */
const BYTES_PER_TURN = 524_288;

export function saysJson({ headers }: IncomingMessage): boolean {
  return JSON_TYPE.test(headers['content-type'] ?? '');
}

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;

/**
 * Rejects a body before reading it if the announced length is too large or the encoding is not accepted.
 * @returns the encoding of the body
 * @throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE
 */
export function checkBodyHeaders(
  request: IncomingMessage,
  maxBytes: number,
  accepted: readonly BodyEncoding[] = [],
): BodyEncoding | undefined {
  const encoding = bodyEncoding(request, accepted);
  if (announcedBytes(request) > maxBytes) throw bodyTooLarge(maxBytes);
  return encoding;
}

function bodyTooLarge(maxBytes: number, what = 'body') {
  return fail('BODY_TOO_LARGE', { message: `The ${what} has more than ${maxBytes} bytes.` });
}

/** Returns the bytes that `content-length` announces; 0 for a chunked body. */
export function announcedBytes({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? 0);
}

/**
 * Reads a request's body and checks it while it arrives, so that it is rejected at the first invalid byte. The rest then stays in the
 * request; the code that sends the error reads and drops it. A body that has already arrived is read synchronously, without a promise.
 */
export function readBody(
  request: IncomingMessage,
  reading: BodyReading,
): readonly Buffer[] | Promise<readonly Buffer[]> {
  const isLarge = announcedBytes(request) > SMALL_BODY_BYTES;
  if (!isLarge || reading.beforeLarge === undefined) return readArrived(request, reading, isLarge);
  return reading.beforeLarge().then(() => readArrived(request, reading, isLarge));
}

function readArrived(
  request: IncomingMessage,
  reading: BodyReading,
  isLarge: boolean,
): readonly Buffer[] | Promise<readonly Buffer[]> {
  if (request.destroyed || reading.call?.hasLeft === true) throw new ClientLeft();
  if (reading.encoded !== undefined) return awaitBody(request, reading, isLarge);
  const { headers, complete, readableLength } = request;
  const isAllThatWasAnnounced = headers['content-length'] !== undefined && readableLength === announcedBytes(request);
  const isHere = isAllThatWasAnnounced || (complete && readableLength <= SMALL_BODY_BYTES);
  return isHere ? takeBody(request, reading) : awaitBody(request, reading, isLarge);
}

/**
 * Reads a body that arrived together with its head, as most do, synchronously: without listeners and without a timer. Node marks a request
 * as complete only after its `request` event has been handled. Until then, the announced length shows whether the whole body has arrived.
 */
function takeBody(request: IncomingMessage, { limits: { maxBytes }, room, look }: BodyReading): readonly Buffer[] {
  const body = (request.read() ?? NOTHING) as Buffer;
  // Resuming also makes Node read the end of the request, which may not have arrived yet. The connection keeps the request until then.
  request.resume();
  if (body.length > maxBytes) throw bodyTooLarge(maxBytes);
  room.add(body.length);
  try {
    look?.feed(body);
    look?.finish();
  } catch (error) {
    throw asRefusal(error);
  }
  return [body];
}

const NOTHING = Buffer.alloc(0);

function awaitBody(
  request: IncomingMessage,
  { limits, room, look, beforeLarge, call, encoded }: BodyReading,
  mayBeLarge: boolean,
): Promise<readonly Buffer[]> {
  return new Promise((resolve, reject) => {
    const chunks = new BodyChunks();
    const pace = new BodyPace(limits, stopWith);
    const stopListening = call?.onLeave(onClose);
    const decoder = encoded === undefined ? undefined : openDecoder(encoded, limits.maxBytes);
    const body = decoder ?? request;
    let isAllowed = mayBeLarge || beforeLarge === undefined;
    let bodyBytes = 0;
    let bytesThisTurn = 0;
    let hasArrived = false;
    let stopped = false;

    function onArrival(chunk: Buffer): void {
      try {
        pace.receivedBytes += chunk.length;
        if (pace.receivedBytes > limits.maxBytes) throw bodyTooLarge(limits.maxBytes);
        room.add(chunk.length);
        if (decoder === undefined) takeIn(chunk);
        else feed(decoder, chunk);
      } catch (error) {
        stopWith(asRefusal(error));
      }
    }

    /** After the end of the encoded data, a decoder accepts no bytes and never emits `drain`. Further bytes must therefore not wait for `drain`. */
    function feed(to: BodyDecoder, chunk: Buffer): void {
      if (to.readableEnded || to.write(chunk)) return;
      request.pause();
      to.once('drain', continueArrival);
    }

    function onDecoded(chunk: Buffer): void {
      try {
        const decodedBytes = bodyBytes + chunk.length;
        if (decodedBytes > limits.maxBytes) throw bodyTooLarge(limits.maxBytes, 'decoded body');
        checkExpansion(pace.receivedBytes, decodedBytes);
        room.add(chunk.length);
        takeIn(chunk);
      } catch (error) {
        stopWith(asRefusal(error));
      }
    }

    function takeIn(chunk: Buffer): void {
      bodyBytes += chunk.length;
      look?.feed(chunk);
      chunks.push(chunk);
      bytesThisTurn += chunk.length;
      if (!isAllowed && bodyBytes > SMALL_BODY_BYTES) askWhetherAllowed();
      else if (bytesThisTurn >= BYTES_PER_TURN) letOthersRun();
    }

    function askWhetherAllowed(): void {
      isAllowed = true;
      body.pause();
      void beforeLarge?.().then(resumeBody, stopWith);
    }

    function letOthersRun(): void {
      bytesThisTurn = 0;
      body.pause();
      setImmediate(resumeBody);
    }

    function resumeBody(): void {
      if (!stopped) body.resume();
    }

    function continueArrival(): void {
      if (!stopped) request.resume();
    }

    function onArrived(): void {
      hasArrived = true;
      if (decoder === undefined || decoder.readableEnded) onEnd();
      else decoder.end();
    }

    function onDecodedAll(): void {
      if (hasArrived) onEnd();
      // Bytes after the end of the encoded data will be rejected. Until then they are read, because they must not collect in memory.
      else continueArrival();
    }

    function onBroken(cause: Error): void {
      if (encoded !== undefined) stopWith(brokenBody(encoded.encoding, cause));
    }

    function onEnd(): void {
      try {
        if (encoded !== undefined && decoder?.bytesWritten !== pace.receivedBytes) throw brokenBody(encoded.encoding);
        look?.finish();
        stop();
        resolve(chunks.all());
      } catch (error) {
        stopWith(asRefusal(error));
      }
    }

    /** Node also emits `close` after the last byte of a complete request, possibly before the decoder has decoded that byte. */
    function onClose(): void {
      if (!hasArrived || call?.hasLeft === true) stopWith(new ClientLeft());
    }

    function stopWith(error: unknown): void {
      stop();
      request.pause();
      reject(error);
    }

    function stop(): void {
      stopped = true;
      pace.stop();
      stopListening?.();
      request.off('data', onArrival).off('end', onArrived).off('error', onClose).off('close', onClose);
      // After the body was read, a reset of the connection no longer matters. Without a listener for the event `error`, it would end the process.
      request.on('error', ignore);
      decoder?.off('data', onDecoded).off('end', onDecodedAll).off('error', onBroken).on('error', ignore).destroy();
    }

    decoder?.on('data', onDecoded).on('end', onDecodedAll).on('error', onBroken);
    request.on('data', onArrival).on('end', onArrived).on('error', onClose).on('close', onClose);
  });
}

function ignore(): void {}

function asRefusal(error: unknown): unknown {
  if (!(error instanceof JsonError)) return error;
  return fail('INVALID_JSON', { message: `The body is not valid JSON: ${error.message}.`, cause: error });
}

const SMALL_BYTES = 4_096;
const SLAB_BYTES = 65_536;

/**
 * Collects the chunks of a body. It joins small chunks, because each chunk object uses extra memory: a body that arrives byte by byte would
 * use many times its size.
 */
export class BodyChunks {
  readonly #chunks: Buffer[] = [];
  #slab: Buffer | undefined;
  #used = 0;

  push(chunk: Buffer): void {
    if (chunk.length >= SMALL_BYTES || (this.#chunks.length === 0 && this.#slab === undefined)) {
      this.#endSlab();
      this.#chunks.push(chunk);
      return;
    }
    if (this.#slab !== undefined && this.#used + chunk.length > SLAB_BYTES) this.#endSlab();
    this.#slab ??= Buffer.allocUnsafeSlow(SLAB_BYTES);
    chunk.copy(this.#slab, this.#used);
    this.#used += chunk.length;
  }

  all(): readonly Buffer[] {
    this.#endSlab();
    return this.#chunks;
  }

  #endSlab(): void {
    if (this.#slab === undefined) return;
    this.#chunks.push(this.#slab.subarray(0, this.#used));
    this.#slab = undefined;
    this.#used = 0;
  }
}
