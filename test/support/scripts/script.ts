import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';

/** The behaviour of a scripted upstream for one call. */
export interface Script {
  /** Whether it starts before the body has arrived. Default: after it. */
  readonly early?: boolean;
  answer(exchange: Exchange): Promise<void> | void;
}

export interface Exchange {
  readonly call: RecordedCall;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborted when either side closes the connection. */
  readonly closed: AbortSignal;
  /** Announces that the script will break the connection, so that this does not count as a disconnect of the client. */
  breaking(): void;
}

/** The upstream's record of a call. */
export interface RecordedCall {
  readonly method: string;
  /** The path with its query string. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values of headers as they arrived, repeated ones too. */
  readonly rawHeaders: readonly string[];
  /** The whole body once the script begins; empty before. */
  readonly body: Buffer;
  /** The parsed body; undefined if it is not JSON. */
  readonly json: unknown;
  /** The time in milliseconds since 1970. */
  readonly at: number;
  /** The number of the connection, from 1. Equal numbers mean the same connection. */
  readonly connection: number;
  /** The bytes handed to the connection for this call so far, head and framing included. */
  readonly bytesSent: number;
  /** Whether the client closed the connection before it had the whole answer. */
  readonly closedEarly: boolean;
  /** Resolves when the client disconnects. */
  readonly clientGone: Promise<void>;
  /** Resolves when the script has ended or its connection has closed. */
  readonly ended: Promise<void>;
}

/** Waits this long, or until the connection closes. */
export async function pause(milliseconds: number, closed: AbortSignal): Promise<void> {
  if (milliseconds <= 0) return;
  let timer: NodeJS.Timeout | undefined;
  const time = new Promise<void>((wake) => {
    timer = setTimeout(wake, milliseconds);
  });
  await orClosed(time, closed);
  clearTimeout(timer);
}

/** Waits for the promise, or until the connection closes. */
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

/** Writes and waits until the system has the bytes, or the connection closes. */
export function write({ response, closed }: Exchange, bytes: string | Buffer): Promise<void> {
  if (closed.aborted) return Promise.resolve();
  return orClosed(new Promise<void>((done) => response.write(bytes, () => done())), closed);
}
