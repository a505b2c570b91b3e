import type { IncomingMessage } from 'node:http';
import { fail } from '../../../core/errors';
import type { PortPlace } from './tokens';

const HOST = /^(\d{1,5})-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const BELOW = /^\/v1\/sandboxes\/[^/]+\/ports\/[^/]+\/proxy/;

/** @throws PORT_INVALID */
export function readPort(text: string | undefined): number {
  const port = /^\d{1,5}$/.test(text ?? '') ? Number(text) : 0;
  if (port < 1 || port > 65_535) {
    throw fail('PORT_INVALID', { param: 'port', message: 'port: expected an integer from 1 to 65535' });
  }
  return port;
}

/** `8000-<id>.sandboxes.example` of `sandboxes.example`; undefined for another host. */
export function placeOfHost(host: string, domain: string): PortPlace | undefined {
  const [, port, sandboxId = ''] = HOST.exec(host.slice(0, -domain.length - 1)) ?? [];
  return port === undefined ? undefined : { port: readPort(port), sandboxId };
}

/** What the instance is asked for, byte for byte as the client wrote it. */
export function pathBelowProxy({ url = '' }: IncomingMessage): string {
  const rest = url.replace(BELOW, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Where clients reach a port: at a host of its own where there is a domain for that, else at a path. */
export function urlOfPort(
  { sandboxId, port }: PortPlace,
  { publicUrl, domain }: { readonly publicUrl: string; readonly domain: string | undefined },
): string {
  if (domain === undefined) return `${publicUrl}/v1/sandboxes/${sandboxId}/ports/${port}/proxy/`;
  const { protocol, port: publicPort } = new URL(publicUrl);
  return `${protocol}//${port}-${sandboxId}.${domain}${publicPort === '' ? '' : `:${publicPort}`}/`;
}
