import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { StartFailure } from '../base/start-failure';

/**
 * Reads `PUBLIC_URL`, the address at which clients reach the gateway; undefined if it is not set. The result has no slash at its
 * end.
 */
export function saidPublicUrl(): string | undefined {
  const configured = (process.env['PUBLIC_URL'] ?? '').replace(/\/+$/, '');
  return configured === '' ? undefined : configured;
}

/** Returns the public address, or the address that the client has used if none is configured. */
export function publicUrlOf({ headers, socket }: IncomingMessage): string {
  return saidPublicUrl() ?? `${socket instanceof TLSSocket ? 'https' : 'http'}://${headers.host ?? 'localhost'}`;
}

const LOOPBACK = /^((.+\.)?localhost|127(\.\d+){3}|::1|\[::1\])$/i;

/** Returns whether only this machine reaches a host, by its name or address. */
export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.test(host);
}

/**
 * Reads `SANDBOX_DOMAIN`. Each port of a sandbox has a host of its own below this domain. Returns undefined if it is not set;
 * ports are then paths. The gateway's own host must not be below this domain: it would count as a port, and pages of customers
 * could set its cookies.
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
