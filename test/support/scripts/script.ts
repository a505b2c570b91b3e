import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';

/** What a scripted upstream does with one call. */
export interface Script {
  /** Starts before the body has come; otherwise when it is there. */
  readonly early?: boolean;
  answer(exchange: Exchange): Promise<void> | void;
}

export interface Exchange {
  readonly call: RecordedCall;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborted when the connection is closed, by whichever side. */
  readonly closed: AbortSignal;
  /** To be said before the script breaks the connection, so that this is not taken for the client's leaving. */
  breaking(): void;
}

/** What the upstream saw of a call. */
export interface RecordedCall {
  readonly method: string;
  /** With its query string. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values as they came, repeated ones too. */
  readonly rawHeaders: readonly string[];
  /** Whole once the script begins; empty before. */
  readonly body: Buffer;
  /** The body parsed; undefined when it is not JSON. */
  readonly json: unknown;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Counts the connections of this upstream from 1: equal numbers came over the same one. */
  readonly connection: number;
  /** How many bytes were handed to the connection for this call so far, head and framing included. */
  readonly bytesSent: number;
  /** The client closed the connection before it had the whole answer. */
  readonly closedEarly: boolean;
  /** Resolves when it does. */
  readonly clientGone: Promise<void>;
  /** Resolves when the script is done or its connection closed. */
  readonly ended: Promise<void>;
}

/** Waits that long, or until the connection is closed. */
export async function pause(milliseconds: number, closed: AbortSignal): Promise<void> {
  if (milliseconds <= 0) return;
  let timer: NodeJS.Timeout | undefined;
  const time = new Promise<void>((wake) => {
    timer = setTimeout(wake, milliseconds);
  });
  await orClosed(time, closed);
  clearTimeout(timer);
}

/** Waits for the promise, or until the connection is closed. */
export function orClosed(promise: Promise<unknown>, closed: AbortSignal): Promise<void> {
  if (closed.aborted) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const leave = (): void => resolve();
    closed.addEventListener('abort', leave, { once: true });
    promise.then(leave, reject).finally(() => closed.removeEventListener('abort', leave));
  });
}

export function untilClosed(closed: AbortSignal): Promise<void> {
  return orClosed(new Promise(() => undefined), closed);
}

/** Writes and waits until the bytes were handed to the system, or the connection is closed. */
export function write({ response, closed }: Exchange, bytes: string | Buffer): Promise<void> {
  if (closed.aborted) return Promise.resolve();
  return orClosed(new Promise<void>((done) => response.write(bytes, () => done())), closed);
}
