import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import type { Proxies } from './proxies';

/**
 * Returns the client's address. `X-Forwarded-For` counts only if the connection comes from one of the operator's proxies. Of its
 * entries only the last ones count, one for each proxy, because the proxies themselves have added them.
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

/**
 * Returns what counts as one client: an IPv4 address, or the /64 of an IPv6 address, because a /64 usually belongs to one user.
 */
export function placeOf(text: string): string {
  if (!ipaddr.isValid(text)) return text;
  const address = ipaddr.process(text);
  return address instanceof ipaddr.IPv6 ? `${address.parts.slice(0, 4).join(':')}::/64` : address.toString();
}
