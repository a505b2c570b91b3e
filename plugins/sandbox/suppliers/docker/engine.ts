import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { json, text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { Ambiguous, NotSent, RateLimited, TimedOut } from '../supplier';

/**
 * Docker's Engine API over its local socket, as plain HTTP. The driver needs only a dozen endpoints. It must know whether a
 * failed request was sent, which client libraries do not report.
 */
export class DockerEngine {
  constructor(
    private readonly socketPath: string,
    /** The timeouts of reads (`questions`) and changes (`deeds`). The engine answers reads from memory, but changes may take a while. */
    private readonly withinMs: { readonly questions: number; readonly deeds: number },
  ) {}

  /** Sends a request and returns every answer except 429. @throws NotSent, Ambiguous, RateLimited */
  async ask(method: string, path: string, options: AskOptions = {}): Promise<EngineAnswer> {
    const response = await this.#send(method, path, options);
    return answerOf(method, path, response);
  }

  /** Sends a request whose answer is read as a stream. @throws NotSent, Ambiguous, RateLimited */
  async open(method: string, path: string): Promise<{ status: number; content: IncomingMessage }> {
    const response = await this.#send(method, path, {});
    // The reader may pause a stream for as long as it likes, so no timeout applies any more.
    response.socket.setTimeout(0);
    return { status: response.statusCode ?? 0, content: response };
  }

  /** Returns the headers of an answer without a body. */
  async head(path: string): Promise<{ status: number; headers: IncomingMessage['headers'] }> {
    const response = await this.#send('HEAD', path, {});
    response.resume();
    return { status: response.statusCode ?? 0, headers: response.headers };
  }

  /** Sends a request that turns the connection into a plain stream of bytes in both directions. */
  async hijack(
    path: string,
    body: unknown,
  ): Promise<{ status: 101; stream: Duplex } | (EngineAnswer & { stream?: never })> {
    return new Promise((resolve, reject) => {
      const { request, failure } = this.#request('POST', path, {
        'content-type': 'application/json',
        connection: 'Upgrade',
        upgrade: 'tcp',
      });
      request.once('upgrade', (_response, socket: Duplex, first: Buffer) => {
        request.setTimeout(0);
        if (first.length > 0) socket.unshift(first);
        resolve({ status: 101, stream: socket });
      });
      request.once('response', (response) => {
        answerOf('POST', path, response).then(resolve, reject);
      });
      request.once('error', (error) => reject(failure(error)));
      request.end(JSON.stringify(body));
    });
  }

  #send(method: string, path: string, { body, content, contentType }: AskOptions): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const type = contentType ?? (body === undefined ? undefined : 'application/json');
      const { request, failure } = this.#request(method, path, type === undefined ? {} : { 'content-type': type });
      request.once('error', (error) => reject(failure(error)));
      request.once('response', (response) => {
        if (response.statusCode !== 429) return resolve(response);
        response.resume();
        reject(new RateLimited(`${method} ${path}: too many requests`, Number(response.headers['retry-after']) || 1));
      });
      if (content === undefined) request.end(body === undefined ? undefined : JSON.stringify(body));
      // Ignore the pipeline's failure here, because the request reports the same failure by its own `error` event.
      else pipeline(content, request).catch(() => undefined);
    });
  }

  #request(method: string, path: string, headers: Record<string, string>) {
    // Each request has its own connection. If the engine had just closed a reused one, the driver could not know whether the request was sent.
    const request = httpRequest({ socketPath: this.socketPath, method, path, headers, agent: false });
    let isConnected = false;
    request.once('socket', (socket) => socket.once('connect', () => (isConnected = true)));
    let isLate = false;
    const withinMs = method === 'GET' || method === 'HEAD' ? this.withinMs.questions : this.withinMs.deeds;
    request.setTimeout(withinMs, () => {
      isLate = true;
      request.destroy(new Error(`no answer within ${withinMs} ms`));
    });
    const failure = (cause: Error) => {
      const what = `${method} ${path.split('?')[0]}: ${cause.message}`;
      if (!isConnected) return new NotSent(what, { cause });
      return isLate ? new TimedOut(what, { cause }) : new Ambiguous(what, { cause });
    };
    return { request, failure };
  }
}

interface AskOptions {
  readonly body?: unknown;
  readonly content?: Readable;
  readonly contentType?: string;
}

export interface EngineAnswer {
  readonly status: number;
  /** The parsed JSON. An error's text is in `message`. */
  readonly body: unknown;
}

async function answerOf(method: string, path: string, response: IncomingMessage): Promise<EngineAnswer> {
  try {
    const isJson = response.headers['content-type']?.startsWith('application/json') === true;
    const body: unknown = isJson ? await json(response) : { message: await text(response) };
    return { status: response.statusCode ?? 0, body };
  } catch (cause) {
    throw new Ambiguous(`${method} ${path.split('?')[0]}: the answer was interrupted`, { cause });
  }
}

/** Returns the engine's error message. */
export function messageOf({ status, body }: EngineAnswer): string {
  const { message } = (body ?? {}) as { message?: unknown };
  return typeof message === 'string' && message !== '' ? message.trim() : `the engine answered ${status}`;
}
