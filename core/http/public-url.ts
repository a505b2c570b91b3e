import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';

/** `PUBLIC_URL`, where the gateway is reached from outside; undefined where that is not said. Without a slash at its end. */
export function saidPublicUrl(): string | undefined {
  const said = (process.env['PUBLIC_URL'] ?? '').replace(/\/+$/, '');
  return said === '' ? undefined : said;
}

/** How the caller has reached us, unless it is said. */
export function publicUrlOf({ headers, socket }: IncomingMessage): string {
  return saidPublicUrl() ?? `${socket instanceof TLSSocket ? 'https' : 'http'}://${headers.host ?? 'localhost'}`;
}
