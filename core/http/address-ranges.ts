import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export type AddressRange = readonly [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number];

/** Parses an address or a range such as `10.0.0.0/8`. An address counts as a range of one address. Returns undefined for any other text. */
export function readAddressRange(text: string): AddressRange | undefined {
  const [start = '', length] = text.split('/');
  // `isIP` rejects leading zeros, because some programs read `010.0.0.1` as another address.
  if (isIP(start) === 0) return undefined;
  if (length === undefined) return whole(ipaddr.parse(start));
  if (!/^\d{1,3}$/.test(length) || !ipaddr.isValidCIDR(text)) return undefined;
  const [address, bits] = ipaddr.parseCIDR(text);
  const isMapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && bits >= 96;
  return isMapped ? [address.toIPv4Address(), bits - 96] : [address, bits];
}

function whole(parsed: ipaddr.IPv4 | ipaddr.IPv6): AddressRange {
  const address = ipaddr.process(parsed.toString());
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

/** Returns whether an address is in one of the ranges. An IPv4 address in IPv6 notation is compared as IPv4. */
export function isWithin(text: string, ranges: readonly AddressRange[]): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  return ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits));
}
