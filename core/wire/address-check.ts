import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The gateway dials public IPv6 addresses in 2000::/3 only, so deprecated forms such as `::127.0.0.1` need no rule of their own. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/** A DNS64 resolver puts this prefix before the IPv4 address of the host. The check looks at that IPv4 address. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/** These addresses are in a public range, but the host agents of clouds answer there and hand out secrets. */
const HOST_AGENTS: ReadonlySet<string> = new Set(['168.63.129.16']);

/** Returns why an IP address is not public (the name of its range); undefined if it is public. */
export function privateRange(address: string): string | undefined {
  if (isIP(address) === 0) return 'not an IP address';
  const parsed = ipaddr.parse(withoutDottedTail(address));
  return parsed instanceof ipaddr.IPv4 ? privateRangeOf4(parsed) : privateRangeOf6(parsed);
}

function privateRangeOf4(address: ipaddr.IPv4): string | undefined {
  if (HOST_AGENTS.has(address.toString())) return 'hostAgent';
  const range = address.range();
  return range === 'unicast' ? undefined : range;
}

function privateRangeOf6(address: ipaddr.IPv6): string | undefined {
  if (address.isIPv4MappedAddress()) return privateRangeOf4(address.toIPv4Address());
  if (address.match(NAT64)) return privateRangeOf4(new ipaddr.IPv4(address.toByteArray().slice(-4)));
  const range = address.range();
  if (range !== 'unicast') return range;
  return address.match(GLOBAL_UNICAST) ? undefined : 'notGlobal';
}

/** `::127.0.0.1` -> `::7f00:1`. The parser would read the first form as an IPv4-mapped address, but the system does not. */
function withoutDottedTail(address: string): string {
  const tail = address.slice(address.lastIndexOf(':') + 1);
  if (tail === address || isIP(tail) !== 4) return address;
  const [a, b, c, d] = new Uint8Array(tail.split('.').map(Number));
  if (a === undefined || b === undefined || c === undefined || d === undefined) return address;
  return `${address.slice(0, -tail.length)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}
