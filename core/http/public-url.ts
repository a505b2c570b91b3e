import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

/**
 * Reads `PUBLIC_URL`, the address at which clients reach the gateway; undefined if it is not set. The result has no slash at its
 * end.
 */
export function saidPublicUrl(): string | undefined {
  const said = (process.env['PUBLIC_URL'] ?? '').replace(/\/+$/, '');
  return said === '' ? undefined : said;
}

/** Returns the public address, or the address that the client has used if none is configured. */
export function publicUrlOf({ headers, socket }: IncomingMessage): string {
  return saidPublicUrl() ?? `${socket instanceof TLSSocket ? 'https' : 'http'}://${headers.host ?? 'localhost'}`;
}
