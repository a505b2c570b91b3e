import type { IncomingMessage, ServerResponse } from 'node:http';
import { contentTag } from '../../../core/http/etag';

/** A JSON answer that is the same for all clients until the configuration changes. */
export interface PreparedText {
  readonly bytes: Buffer;
  readonly etag: string;
}

export function prepareText(value: object): PreparedText {
  const bytes = Buffer.from(JSON.stringify(value));
  return { bytes, etag: contentTag(bytes) };
}

/** Sends the answer, or 304 if the client has it. Any page may read it, because it contains no secret. */
export function sendPrepared(request: IncomingMessage, response: ServerResponse, { bytes, etag }: PreparedText): void {
  const headers = { etag, 'cache-control': 'no-cache', 'access-control-allow-origin': '*' };
  const known = request.headers['if-none-match']?.split(',').map((each) => each.trim().replace(/^W\//, '')) ?? [];
  if (known.includes(etag) || known.includes('*')) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  response.writeHead(200, { ...headers, 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(bytes);
}
