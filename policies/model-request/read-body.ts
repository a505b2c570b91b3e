import type { IncomingMessage } from 'node:http';
import { BodyPace, type PaceLimits } from '../../core/body-pace';
import { type Call, ClientLeft } from '../../core/call';
import { fail } from '../../core/errors';
import { saysJson } from '../../core/http';
import { JsonError, type JsonObserver, JsonScanner } from '../../core/json-scanner';
import { BodyChunks } from './body-chunks';
import type { Buffering } from './buffered-bytes';

export interface BodyLimits extends PaceLimits {
  readonly maxBytes: number;
}

/** Contract section 3; the times are settings. */
export const REQUEST_BODY_LIMITS: Omit<BodyLimits, 'totalMs' | 'slowMs'> = {
  maxBytes: 20_971_520,
  minBytesPerSecond: 1_024,
};

/**
 * How much is looked through before other calls have their turn. A fast client's body can be read 2 MB at a stretch, which
 * for the most laborious JSON would take 50 ms.
 */
const BYTES_PER_TURN = 524_288;

/** What the headers alone tell about a body that cannot be taken. */
export function checkBodyHeaders(request: IncomingMessage, { maxBytes } = REQUEST_BODY_LIMITS): void {
  const { headers } = request;
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') throw fail('UNSUPPORTED_MEDIA_TYPE');
  if (!saysJson(request)) throw fail('UNSUPPORTED_MEDIA_TYPE');
  const length = headers['content-length'];
  if (length !== undefined && Number(length) > maxBytes) throw fail('BODY_TOO_LARGE');
}

/**
 * Reads a request's body while a scanner looks through it, so that it is refused at the first byte that is wrong or too
 * much. The rest is then left in the request for whoever sends the refusal.
 */
export async function readBody(
  request: IncomingMessage,
  observer: JsonObserver,
  limits: BodyLimits,
  buffering: Buffering,
  call: Pick<Call, 'hasLeft' | 'onLeave'>,
): Promise<readonly Buffer[]> {
  if (request.destroyed || call.hasLeft) throw new ClientLeft();
  return request.complete || request.readableLength === Number(request.headers['content-length'])
    ? takeBody(request, observer, limits, buffering)
    : awaitBody(request, observer, limits, buffering, call);
}

/**
 * Most bodies have come with their heads: nobody waits for them, and no clock watches. Node tells that a request is complete only
 * after what its head has begun had its turn: until then the length that was announced tells.
 */
function takeBody(
  request: IncomingMessage,
  observer: JsonObserver,
  { maxBytes }: BodyLimits,
  buffering: Buffering,
): readonly Buffer[] {
  const body = (request.read() ?? NOTHING) as Buffer;
  // Its end, which may be still to come, is read too: until then the connection keeps the request.
  request.resume();
  if (body.length > maxBytes) throw fail('BODY_TOO_LARGE');
  buffering.add(body.length);
  try {
    const scanner = new JsonScanner(observer);
    scanner.feed(body);
    scanner.finish();
  } catch (error) {
    throw asRefusal(error);
  }
  return [body];
}

const NOTHING = Buffer.alloc(0);

function awaitBody(
  request: IncomingMessage,
  observer: JsonObserver,
  limits: BodyLimits,
  buffering: Buffering,
  call: Pick<Call, 'onLeave'>,
): Promise<readonly Buffer[]> {
  return new Promise((resolve, reject) => {
    const scanner = new JsonScanner(observer);
    const chunks = new BodyChunks();
    const pace = new BodyPace(limits, stopWith);
    const stopListening = call.onLeave(onClose);
    let bytesThisTurn = 0;
    let stopped = false;

    function onData(chunk: Buffer): void {
      try {
        pace.receivedBytes += chunk.length;
        if (pace.receivedBytes > limits.maxBytes) throw fail('BODY_TOO_LARGE');
        buffering.add(chunk.length);
        scanner.feed(chunk);
        chunks.push(chunk);
        bytesThisTurn += chunk.length;
        if (bytesThisTurn >= BYTES_PER_TURN) letOthersRun();
      } catch (error) {
        stopWith(asRefusal(error));
      }
    }

    function letOthersRun(): void {
      bytesThisTurn = 0;
      request.pause();
      setImmediate(() => {
        if (!stopped) request.resume();
      });
    }

    function onEnd(): void {
      try {
        scanner.finish();
        stop();
        resolve(chunks.all());
      } catch (error) {
        stopWith(asRefusal(error));
      }
    }

    function onClose(): void {
      stopWith(new ClientLeft());
    }

    function stopWith(error: unknown): void {
      stop();
      request.pause();
      reject(error);
    }

    function stop(): void {
      stopped = true;
      pace.stop();
      stopListening();
      request.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose);
      // A reset that comes later is nobody's business here, and must not end the process.
      request.on('error', ignore);
    }

    request.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose);
  });
}

function ignore(): void {}

function asRefusal(error: unknown): unknown {
  if (!(error instanceof JsonError)) return error;
  return fail('INVALID_JSON', { message: `The body is not valid JSON: ${error.message}.`, cause: error });
}
