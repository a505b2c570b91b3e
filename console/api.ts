import { ROOT } from './router';

/** The interface of the page, docs/console.md or docs/operator.md, over HTTP. */

/** What the gateway, or the network, said instead of an answer. */
export class Failure extends Error {
  constructor(
    /** 0 when nothing answered. */
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
  /** Undefined when nothing is new (304), or there is nothing to say (204). */
  readonly data: T | undefined;
  readonly etag: string | undefined;
}

let csrfToken: string | undefined;
let onSignedOut: () => void = () => undefined;

/** Every change carries it, so that no other site can make one. */
export function setCsrfToken(token: string | undefined): void {
  csrfToken = token;
}

export function whenSignedOut(run: () => void): void {
  onSignedOut = run;
}

/** The address of something under the interface, for links; a path that begins with `/` is one already. */
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
    // An If-None-Match of ours must not be answered from the browser's own cache.
    cache: 'no-store',
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
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

/** `name?a=1&b=2` of what is given; what is undefined or empty is left out. */
export function withQuery(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  return search.size === 0 ? path : `${path}?${search}`;
}
