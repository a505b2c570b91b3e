import type { IncomingMessage, ServerResponse } from 'node:http';
import { fail } from '../errors';
import { saidPublicUrl } from '../http/public-url';

const SAFE_METHODS = ['GET', 'HEAD'];

export function isChange({ method = 'GET' }: IncomingMessage): boolean {
  return !SAFE_METHODS.includes(method);
}

/** Nothing inline, nothing from elsewhere, framed nowhere. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  ...['script-src', 'style-src', 'connect-src', 'font-src', 'form-action'].map((directive) => `${directive} 'self'`),
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/** What is said to one person is kept by no cache, and read as what it says it is. */
export function beginConsoleAnswer(response: ServerResponse): void {
  response.setHeader('cache-control', 'no-store');
  response.setHeader('content-security-policy', CONTENT_SECURITY_POLICY);
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('referrer-policy', 'no-referrer');
}

/**
 * Only our own page may send changes. Browsers say where a request comes from, and no page can make them say something else;
 * whoever says nothing is no browser with our page in it. @throws FORBIDDEN
 */
export function refuseOtherSites(request: IncomingMessage): void {
  if (!isChange(request)) return;
  const { 'sec-fetch-site': site, origin, host } = request.headers;
  if (site === undefined ? isOwnOrigin(origin, host) : site === 'same-origin') return;
  throw fail('FORBIDDEN', {
    message: 'The console accepts this request only from its own page, not from another site.',
  });
}

/** A proxy may have changed the Host header: then `PUBLIC_URL` says what our origin is. */
function isOwnOrigin(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined || !URL.canParse(origin)) return false;
  const publicUrl = saidPublicUrl();
  return new URL(origin).host === host || (publicUrl !== undefined && origin === new URL(publicUrl).origin);
}
