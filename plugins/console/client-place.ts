import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import { placeOf } from '../../core/http/client-place';

/**
 * Where a request comes from, as guesses are counted: an IPv4 address, or the /64 of an IPv6 one, for whoever has one of it has all.
 * Of `X-Forwarded-For` only what our own proxies have added is believed: one address each, the last ones.
 */
export function clientPlace({ headers, socket }: IncomingMessage, proxies: number): string {
  const forwarded = proxies === 0 ? [] : String(headers['x-forwarded-for'] ?? '').split(',');
  const said = (forwarded.at(-proxies) ?? '').trim();
  const text = ipaddr.isValid(said) ? said : (socket.remoteAddress ?? '');
  return placeOf(text);
}
