import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { StartFailure } from '../base/start-failure';

/** Reads `PUBLIC_URL`, the URL at which clients reach the gateway; undefined if it is not set. The result has no trailing slash. */
export function saidPublicUrl(): string | undefined {
  const configured = (process.env['PUBLIC_URL'] ?? '').replace(/\/+$/, '');
  return configured === '' ? undefined : configured;
}

/** Returns `PUBLIC_URL`, or the URL that the client used if it is not set. */
export function publicUrlOf({ headers, socket }: IncomingMessage): string {
  return saidPublicUrl() ?? `${socket instanceof TLSSocket ? 'https' : 'http'}://${headers.host ?? 'localhost'}`;
}

const LOOPBACK = /^((.+\.)?localhost|127(\.\d+){3}|::1|\[::1\])$/i;

/** Returns whether a host name or address is reachable from this machine only. */
export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.test(host);
}

/**
 * Reads `SANDBOX_DOMAIN`. Each port of a sandbox has its own host below this domain. Returns undefined if it is not set; ports then have
 * paths instead. The gateway's own host must not be below this domain: it would count as a port, and customers' pages could set its
 * cookies.
 * @throws StartFailure
 */
export function readPortDomain(env: NodeJS.ProcessEnv): string | undefined {
  const domain = (env['SANDBOX_DOMAIN'] ?? '').toLowerCase().replace(/\.$/, '');
  if (domain === '') return undefined;
  const publicUrl = saidPublicUrl();
  if (publicUrl === undefined || !URL.canParse(publicUrl)) return domain;
  const host = new URL(publicUrl).hostname.replace(/\.$/, '');
  if (host !== domain && !host.endsWith(`.${domain}`)) return domain;
  throw new StartFailure(
    `SANDBOX_DOMAIN (${domain}) must not contain the host of PUBLIC_URL (${host}): give sandboxes a domain of their own.`,
  );
}
