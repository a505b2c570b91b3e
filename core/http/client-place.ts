import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import type { Proxies } from './proxies';

/**
 * Returns the client's address. `X-Forwarded-For` counts only if the connection comes from one of the operator's proxies. Of its
 * entries only the last ones count, one for each proxy, because the proxies themselves have added them. Undefined if a proxy has
 * sent fewer, or something that is no address.
 */
export function clientAddress({ headers, socket }: IncomingMessage, { count, isProxy }: Proxies): string | undefined {
  const peer = socket.remoteAddress ?? '';
  if (count === 0 || !isProxy(peer)) return peer;
  const added = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .at(-count)
    ?.trim();
  return added !== undefined && ipaddr.isValid(added) ? added : undefined;
}

/** Returns the place of a request's client, or of its proxy if the proxy does not tell the client's address. */
export function clientPlace(request: IncomingMessage, proxies: Proxies): string {
  return placeOf(clientAddress(request, proxies) ?? request.socket.remoteAddress ?? '');
}

/**
 * Returns what counts as one client: an IPv4 address, or the /64 of an IPv6 address, because a /64 usually belongs to one user.
 */
export function placeOf(text: string): string {
  if (!ipaddr.isValid(text)) return text;
  const address = ipaddr.process(text);
  return address instanceof ipaddr.IPv6 ? `${address.parts.slice(0, 4).join(':')}::/64` : address.toString();
}
