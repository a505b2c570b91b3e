import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export type AddressRange = readonly [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number];

/** Reads an address, which is a range of one, or a range such as `10.0.0.0/8`; undefined where the text is neither. */
export function readAddressRange(text: string): AddressRange | undefined {
  const [start = '', length] = text.split('/');
  // Other readers take `010.0.0.1` for another address.
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

/** Whether an address lies in one of the ranges. An IPv4 address that is written as an IPv6 one is the IPv4 address. */
export function isWithin(text: string, ranges: readonly AddressRange[]): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  return ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits));
}
