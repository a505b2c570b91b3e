import ipaddr from 'ipaddr.js';

/** What counts as one client: an IPv4 address, or the /64 of an IPv6 one, because whoever has one of it has all. */
export function placeOf(text: string): string {
  if (!ipaddr.isValid(text)) return text;
  const address = ipaddr.process(text);
  return address instanceof ipaddr.IPv6 ? `${address.parts.slice(0, 4).join(':')}::/64` : address.toString();
}
