import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure, Refusal, UsageError } from './failure';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A client of the gateway's admin listener. */
export interface Client {
  /** Sends a request and returns the answer's JSON as `T`, without validation. @throws Failure that says what to do */
  ask<T>(method: string, path: string, body?: object, headers?: Readonly<Record<string, string>>): Promise<T>;
  /** Returns the answer's body as a stream. */
  open(path: string): Promise<ReadableStream<Uint8Array>>;
}

const DEFAULT_URL = 'http://127.0.0.1:9876';

export function connect(environment: Environment): Client {
  const base = baseUrl(environment['TOLLGATE_URL'] ?? DEFAULT_URL);

  async function send(method: string, path: string, body?: object, more: object = {}): Promise<Response> {
    const { token, source } = await readToken(environment, base);
    const headers: Record<string, string> = { authorization: `Bearer ${token}`, ...more };
    if (body !== undefined) headers['content-type'] = 'application/json';
    const sent = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    let response: Response;
    try {
      response = await fetch(`${base}/admin/v1${path}`, sent);
    } catch (error) {
      throw new Failure(unreachable(base, error), { cause: error });
    }
    if (!response.ok) throw await refused(response, source);
    return response;
  }

  return {
    ask: async <T>(method: string, path: string, body?: object, headers?: object) => {
      const response = await send(method, path, body, headers);
      try {
        return (await response.json()) as T;
      } catch (cause) {
        throw new Failure(`The server at ${base} is not Tollgate's admin listener. Check TOLLGATE_URL.`, {
          cause,
        });
      }
    },
    open: async (path) => {
      const { body } = await send('GET', path);
      if (body === null) throw new Failure('The gateway sent an empty answer.');
      return body;
    },
  };
}

/** Returns the path of a list with the filters as its query. Filters without a value are left out. */
export function withQuery(path: string, filters: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(name, value);
  return query.size === 0 ? path : `${path}?${query}`;
}

function baseUrl(text: string): string {
  if (!/^https?:\/\/[^/]/.test(text) || !URL.canParse(text)) {
    throw new UsageError(
      `TOLLGATE_URL is "${text}", which is not a valid URL; set it to a URL such as ${DEFAULT_URL}.`,
    );
  }
  return text.replace(/\/+$/, '');
}

async function readToken(environment: Environment, base: string): Promise<{ token: string; source: string }> {
  const given = environment['TOLLGATE_TOKEN'];
  if (given !== undefined && given !== '') return { token: given, source: 'TOLLGATE_TOKEN' };
  // The secret in the data folder is valid only for the local gateway and must not be sent to another machine.
  if (!LOOPBACK.test(new URL(base).hostname)) {
    throw new Failure(
      `TOLLGATE_TOKEN is not set. Set it to an operator's token, or the ADMIN_TOKEN, of the gateway at ${base}.`,
    );
  }
  const file = join(environment['DATA_DIR'] || '.tollgate', 'admin-token');
  try {
    return { token: (await readFile(file, 'utf8')).trim(), source: file };
  } catch (cause) {
    throw new Failure(
      `There is no admin token: TOLLGATE_TOKEN is not set, and ${file} cannot be read. Set TOLLGATE_TOKEN to the gateway's ` +
        'ADMIN_TOKEN, or DATA_DIR to its data folder.',
      { cause },
    );
  }
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

function unreachable(base: string, error: unknown): string {
  const { code } = ((error as Error).cause ?? {}) as { code?: string };
  return `Cannot reach ${base} (${code ?? 'no connection'}). Start the gateway there (npm start), or set TOLLGATE_URL to its admin listener.`;
}

interface Envelope {
  readonly request_id?: string;
  readonly error?: { readonly code?: string; readonly message?: string; readonly details?: object };
}

async function refused(response: Response, tokenSource: string): Promise<Failure> {
  const { error, request_id: requestId } = await envelopeOf(response);
  if (response.status === 401 || error?.code === 'ADMIN_TOKEN_SLOWED') {
    return new Refusal(
      `The gateway refused the operator token of ${tokenSource}: ${error?.message ?? `it answered ${response.status}.`} Set TOLLGATE_TOKEN to an operator's token, ` +
        "to the gateway's ADMIN_TOKEN, or, if that is not set, to the content of the file admin-token in its DATA_DIR.",
      error?.code ?? '',
      {},
    );
  }
  if (error?.code === undefined) {
    return new Failure(
      `The gateway answered ${response.status}. Check that TOLLGATE_URL is its admin listener, not the public one.`,
    );
  }
  if (response.status === 404 && error.message?.includes('/admin/v1') === true) {
    return new Failure(
      `${error.message} Check that TOLLGATE_URL is its admin listener, that the gateway is as new as this program, and that its system.config.yml has the plugin of this command.`,
    );
  }
  const again = response.status === 503 ? ' Run the same command again in a moment; it is safe to repeat.' : '';
  const ask = response.status === 500 ? ` The gateway's log has more under ${requestId}.` : '';
  const message = `${error.message} (${error.code})${again}${ask}`;
  return response.status < 500 ? new Refusal(message, error.code, error.details ?? {}) : new Failure(message);
}

async function envelopeOf(response: Response): Promise<Envelope> {
  try {
    return (await response.json()) as Envelope;
  } catch {
    return {};
  }
}
