import { signal } from '@preact/signals';
import { ROOT } from './router';

/** Requests of the page to the gateway. docs/console.md and docs/operator.md describe the interfaces. */

/** A failed request: the gateway returned an error, or the network failed. */
export class Failure extends Error {
  constructor(
    /** The HTTP status; 0 if no response arrived. */
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
  /** The answer's JSON; undefined if nothing has changed (304) or the answer has no body (204). */
  readonly data: T | undefined;
  readonly etag: string | undefined;
}

/** A counter of the changes that this page has made. When it grows, the page fetches all shown data again. */
export const changes = signal(0);

export function refetch(): void {
  changes.value += 1;
}

let csrfToken: string | undefined;
let onSignedOut: () => void = () => undefined;

/** Sets the token that every change carries, so that no other site can send changes. */
export function setCsrfToken(token: string | undefined): void {
  csrfToken = token;
}

export function whenSignedOut(run: () => void): void {
  onSignedOut = run;
}

/** Returns the URL of a path of the console's API, for links. A path that begins with `/` is returned unchanged. */
export function apiUrl(path: string): string {
  return path.startsWith('/') ? path : `${ROOT}/api/${path}`;
}

/** Sends a request and returns the answer's JSON. @throws Failure */
export async function ask<T>(path: string, request: Request = {}): Promise<T> {
  return (await exchange<T>(path, request)).data as T;
}

/** Sends a request and returns the answer's data and metadata. @throws Failure */
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
    // Bypasses the browser's cache, so that the page's own If-None-Match reaches the gateway.
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

/** Appends values to a path's query, such as `name?a=1&b=2`. Skips undefined and empty values. */
export function withQuery(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  return search.size === 0 ? path : `${path}${path.includes('?') ? '&' : '?'}${search}`;
}
