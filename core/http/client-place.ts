import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import type { Proxies } from './proxies';

/**
 * Returns the address of the client of a request. `X-Forwarded-For` is believed only of a connection from an operator's own proxy, and
 * of it only what those proxies have added: one address each, the last ones.
 */
export function clientAddress({ headers, socket }: IncomingMessage, { count, isProxy }: Proxies): string {
  const peer = socket.remoteAddress ?? '';
  if (count === 0 || !isProxy(peer)) return peer;
  const added =
    String(headers['x-forwarded-for'] ?? '')
      .split(',')
      .at(-count) ?? '';
  return ipaddr.isValid(added.trim()) ? added.trim() : peer;
}

/** What counts as one client: an IPv4 address, or the /64 of an IPv6 one, because whoever has one of it has all. */
export function placeOf(text: string): string {
  if (!ipaddr.isValid(text)) return text;
  const address = ipaddr.process(text);
  return address instanceof ipaddr.IPv6 ? `${address.parts.slice(0, 4).join(':')}::/64` : address.toString();
}
