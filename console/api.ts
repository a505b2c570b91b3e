import { signal } from '@preact/signals';
import { ROOT } from './router';

/** Calls of the page's interface over HTTP; docs/console.md or docs/operator.md. */

/** A failed request: an error of the gateway or of the network. */
export class Failure extends Error {
  constructor(
    /** The HTTP status; 0 when nothing answered. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly more: {
      readonly param?: string;
      readonly requestId?: string;
      readonly retryAfterSeconds?: number;
      readonly details?: unknown;
    } = {},
  ) {
    super(message);
  }
}

interface Request {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly body?: object;
  readonly signal?: AbortSignal;
  readonly ifNoneMatch?: string | undefined;
  readonly ifMatch?: string;
}

export interface Answer<T> {
  /** undefined when nothing has changed (304) or the answer has no body (204). */
  readonly data: T | undefined;
  readonly etag: string | undefined;
}

/** Grows with every change that this page makes, so that everything shown is fetched again. */
export const changes = signal(0);

export function refetch(): void {
  changes.value += 1;
}

let csrfToken: string | undefined;
let onSignedOut: () => void = () => undefined;

/** Sets the token that every change carries, so that no other site can make one. */
export function setCsrfToken(token: string | undefined): void {
  csrfToken = token;
}

export function whenSignedOut(run: () => void): void {
  onSignedOut = run;
}

/** Returns the address of a path of the interface, for links. A path that begins with `/` is returned unchanged. */
export function apiUrl(path: string): string {
  return path.startsWith('/') ? path : `${ROOT}/api/${path}`;
}

/** @throws Failure */
export async function ask<T>(path: string, request: Request = {}): Promise<T> {
  return (await exchange<T>(path, request)).data as T;
}

/** @throws Failure */
export async function exchange<T>(path: string, request: Request = {}): Promise<Answer<T>> {
  const { method = 'GET', body, signal, ifNoneMatch, ifMatch } = request;
  const headers = new Headers();
  if (body !== undefined) headers.set('content-type', 'application/json');
  if (method !== 'GET' && csrfToken !== undefined) headers.set('x-csrf-token', csrfToken);
  if (ifNoneMatch !== undefined) headers.set('if-none-match', ifNoneMatch);
  if (ifMatch !== undefined) headers.set('if-match', ifMatch);
  const response = await send(apiUrl(path), {
    method,
    headers,
    // The browser's own cache must not answer this page's If-None-Match.
    cache: 'no-store',
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  if (response.ok && method !== 'GET') refetch();
  const etag = response.headers.get('etag') ?? undefined;
  if (response.status === 204 || response.status === 304) return { data: undefined, etag: etag ?? ifNoneMatch };
  const json = await readJson(response);
  if (response.ok) return { data: json as T, etag };
  const failure = failureOf(response, json);
  if (failure.code === 'NOT_SIGNED_IN') onSignedOut();
  throw failure;
}

async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Failure(0, 'NO_ANSWER', 'The gateway does not answer. It may be restarting, or you are offline.');
  }
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

interface Envelope {
  readonly request_id?: string;
  readonly error?: {
    readonly code?: string;
    readonly message?: string;
    readonly param?: string;
    readonly details?: unknown;
  };
}

function failureOf(response: Response, json: unknown): Failure {
  const { request_id: requestId, error } = (json ?? {}) as Envelope;
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new Failure(
    response.status,
    error?.code ?? 'UNKNOWN',
    error?.message ?? `The gateway answered ${response.status}.`,
    {
      ...(error?.param !== undefined && error.param !== null && { param: error.param }),
      ...(requestId !== undefined && { requestId }),
      ...(error?.details !== undefined && { details: error.details }),
      ...(Number.isFinite(retryAfter) && { retryAfterSeconds: retryAfter }),
    },
  );
}

/** Appends the given values to a path, such as `name?a=1&b=2`. Skips undefined and empty ones. */
export function withQuery(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  return search.size === 0 ? path : `${path}?${search}`;
}
