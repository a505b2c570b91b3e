import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

/**
 * Why an upstream gave no answer, or no whole one.
 * `connect_failed`: no connection was made (DNS, TCP, TLS, forbidden address), so nothing was sent.
 * `timeout`: connecting, the response head or the next byte took too long.
 * `reset`: the connection broke, or the upstream did not send valid HTTP.
 * `cancelled`: the gateway cancelled the request.
 */
export type DialFailure = 'connect_failed' | 'timeout' | 'reset' | 'cancelled';

/**
 * How an attempt without an answer ended. `not_translatable`: no request was sent, because the upstream's dialect cannot express
 * the call.
 */
export type AttemptOutcome = DialFailure | 'status' | 'error_event' | 'adapter_fault' | 'not_translatable';

const KIND_BY_CODE: Readonly<Record<string, DialFailure>> = {
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  ETIMEDOUT: 'timeout',
  UND_ERR_ABORTED: 'cancelled',
  UND_ERR_ABORT: 'cancelled',
  ABORT_ERR: 'cancelled',
  ADDRESS_REFUSED: 'connect_failed',
  NO_CREDENTIAL: 'connect_failed',
  // undici reports this code if the pool was retired before the request began.
  UND_ERR_CLOSED: 'connect_failed',
  ECONNREFUSED: 'connect_failed',
  ENOTFOUND: 'connect_failed',
  EAI_AGAIN: 'connect_failed',
  EHOSTUNREACH: 'connect_failed',
  ENETUNREACH: 'connect_failed',
  EADDRNOTAVAIL: 'connect_failed',
  EMFILE: 'connect_failed',
};

const KIND_BY_NAME: Readonly<Record<string, DialFailure>> = { AbortError: 'cancelled', TimeoutError: 'timeout' };

/** Returns the kind of failure that an error of a request, or of reading its answer, means. */
export function classifyDialFailure(error: unknown): DialFailure {
  const { code, name } = described(error);
  const kind = KIND_BY_CODE[code] ?? KIND_BY_NAME[name];
  if (kind !== undefined) return kind;
  // Resets and the hundred codes of TLS errors mean `connect_failed` only if nothing was sent before.
  return nothingWasSent(error) ? 'connect_failed' : 'reset';
}

/** Returns true if certainly no byte of the request was sent. A repetition then cannot have an effect twice. */
export function nothingWasSent(error: unknown): boolean {
  if (described(error).code === 'UND_ERR_CLOSED') return true;
  return progressOf(error)?.sent === false;
}

/**
 * Returns true if the request was sent on a connection that had answered before. If that connection broke before the head of an
 * answer, the upstream has most likely closed it while it was idle, and never saw the request.
 */
export function wasReusedConnection(error: unknown): boolean {
  return progressOf(error)?.reused === true;
}

interface SendProgress {
  /** Whether a byte of the request was sent. */
  readonly sent: boolean;
  /** Whether the request was sent on a connection that had answered before. */
  readonly reused: boolean;
}

/** undici's errors do not contain how much of a request was sent, but its diagnostics channels report it. */
const progressOfError = new WeakMap<object, SendProgress>();
const progressOfRequest = new WeakMap<object, SendProgress>();
const usedSockets = new WeakSet<Socket>();

const NOT_SENT: SendProgress = { sent: false, reused: false };
const SENT: SendProgress = { sent: true, reused: false };
const SENT_ON_REUSED: SendProgress = { sent: true, reused: true };

subscribe('undici:client:sendHeaders', (message) => {
  const { request, socket } = message as { request: object; socket: Socket };
  progressOfRequest.set(request, usedSockets.has(socket) ? SENT_ON_REUSED : SENT);
  usedSockets.add(socket);
});

subscribe('undici:request:error', (message) => {
  const { request, error } = message as { request: object; error: unknown };
  if (typeof error !== 'object' || error === null) return;
  const progress = progressOfRequest.get(request) ?? NOT_SENT;
  // One error may end several requests. `sent` is true if any of them was sent, `reused` only if all of them used a connection that had answered
  // before.
  const before = progressOfError.get(error);
  progressOfError.set(error, before === undefined ? progress : both(before, progress));
});

/** Notes how much of a request was sent before it failed, for requests that are not sent by undici. */
export function noteProgress(error: object, progress: SendProgress): void {
  progressOfError.set(error, progress);
}

function both(one: SendProgress, other: SendProgress): SendProgress {
  return { sent: one.sent || other.sent, reused: one.reused && other.reused };
}

function progressOf(error: unknown): SendProgress | undefined {
  return typeof error === 'object' && error !== null ? progressOfError.get(error) : undefined;
}

function described(error: unknown): { readonly code: string; readonly name: string } {
  if (typeof error !== 'object' || error === null) return { code: '', name: '' };
  const { code, name } = error as { code?: unknown; name?: unknown };
  return { code: typeof code === 'string' ? code : '', name: typeof name === 'string' ? name : '' };
}
