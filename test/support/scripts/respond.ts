import { pause, type Script, write } from './script';

export interface Response {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** The body: bytes and text are sent unchanged, anything else as JSON. */
  readonly body?: unknown;
  readonly delayMs?: number;
  /** Sends only this many bytes of the body, although `content-length` states all, and closes the connection. */
  readonly cutBody?: number;
}

export function respond({ status = 200, headers = {}, body = '', delayMs = 0, cutBody }: Response): Script {
  const bytes = bytesOf(body);
  const isJson = typeof body !== 'string' && !Buffer.isBuffer(body);
  return {
    answer: async (exchange) => {
      const { response, closed } = exchange;
      await pause(delayMs, closed);
      if (closed.aborted) return;
      response.writeHead(status, {
        ...(isJson ? { 'content-type': 'application/json' } : {}),
        'content-length': bytes.length,
        ...(headers as Record<string, string | string[]>),
      });
      if (cutBody === undefined) {
        response.end(bytes);
        return;
      }
      await write(exchange, bytes.subarray(0, cutBody));
      exchange.breaking();
      response.socket?.end();
    },
  };
}

/** Makes an answer with a JSON content type whose body is not JSON. */
export function malformedJson(): Script {
  return respond({ headers: { 'content-type': 'application/json' }, body: '{"id": "half' });
}

export function redirect(location: string, status = 302): Script {
  return respond({ status, headers: { location } });
}

function bytesOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}
