import type { IncomingMessage } from 'node:http';
import { fail } from '../../../core/errors';
import type { PortPlace } from './tokens';

const HOST = /^(\d{1,5})-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const BELOW = /^\/v1\/sandboxes\/[^/]+\/ports\/[^/]+\/proxy/;

/** Reads a port number. @throws PORT_INVALID */
export function readPort(text: string | undefined): number {
  const port = /^\d{1,5}$/.test(text ?? '') ? Number(text) : 0;
  if (port < 1 || port > 65_535) {
    throw fail('PORT_INVALID', { param: 'port', message: 'port: expected an integer from 1 to 65535' });
  }
  return port;
}

/** Returns the port and sandbox of a host such as `8000-<id>.sandboxes.example`, if the domain is `sandboxes.example`. undefined for another host. */
export function placeOfHost(host: string, domain: string): PortPlace | undefined {
  const [, port, sandboxId = ''] = HOST.exec(host.slice(0, -domain.length - 1)) ?? [];
  return port === undefined ? undefined : { port: readPort(port), sandboxId };
}

/** Returns the path and query for the instance, byte for byte as the client sent them. */
export function pathBelowProxy({ url = '' }: IncomingMessage): string {
  const rest = url.replace(BELOW, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Returns the URL at which clients reach a port: a host of its own if there is a domain for ports, otherwise a path. */
export function urlOfPort(
  { sandboxId, port }: PortPlace,
  { publicUrl, domain }: { readonly publicUrl: string; readonly domain: string | undefined },
): string {
  if (domain === undefined) return `${publicUrl}/v1/sandboxes/${sandboxId}/ports/${port}/proxy/`;
  const { protocol, port: publicPort } = new URL(publicUrl);
  return `${protocol}//${port}-${sandboxId}.${domain}${publicPort === '' ? '' : `:${publicPort}`}/`;
}
