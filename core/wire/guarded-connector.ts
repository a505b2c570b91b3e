import { type LookupAddress, lookup as lookupInDns } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';

/** Resolves all addresses of a host, once for each connection. A second lookup could return other addresses. */
export type Resolve = (
  host: string,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export const resolveInDns: Resolve = (host, done) => lookupInDns(host, { all: true, order: 'verbatim' }, done);

/** The error for an upstream whose host is, or resolves to, an address that is not public, if the upstream's configuration does not have `allowPrivate`. */
export class AddressRefused extends Error {
  readonly code = 'ADDRESS_REFUSED';

  constructor(
    readonly host: string,
    readonly address: string,
    readonly range: string,
  ) {
    super(`refused to connect to ${host}: ${address} is not a public address (${range}), and allowPrivate is not set`);
    this.name = 'AddressRefused';
  }
}

/** How long each of several addresses is tried before the next. Node's default of 250 ms is too short for distant hosts. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

/**
 * Opens connections for undici. It connects to an address that it has checked, so that the socket does no second lookup. The TLS server
 * name stays the host.
 */
export function guardedConnector(settings: {
  readonly allowPrivate: boolean;
  readonly connectMs: number;
  readonly resolve: Resolve;
}): buildConnector.connector {
  const { allowPrivate, connectMs, resolve } = settings;
  const connect = buildConnector({
    timeout: connectMs,
    lookup: guardedLookup(allowPrivate, resolve),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
  } as buildConnector.BuildOptions);
  return (options, callback) => {
    // Checks an IP address in the URL here, because Node calls `lookup` only for names.
    const refused =
      allowPrivate || isIP(options.hostname) === 0 ? undefined : refusal(options.hostname, options.hostname);
    if (refused === undefined) connect(options, callback);
    else queueMicrotask(() => callback(refused, null));
  };
}

function guardedLookup(allowPrivate: boolean, resolve: Resolve): LookupFunction {
  return (host, options, done) => {
    resolve(host, (error, addresses) => {
      if (error !== null) return done(error, '');
      const [first] = addresses;
      if (first === undefined) return done(notFound(host), '');
      const refused = allowPrivate ? undefined : firstRefusal(host, addresses);
      if (refused !== undefined) return done(refused, '');
      if (options.all === true) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };
}

/** Returns an error for the first address that is not public. One such address makes every address that DNS returned for this host untrustworthy. */
function firstRefusal(host: string, addresses: readonly LookupAddress[]): AddressRefused | undefined {
  for (const { address } of addresses) {
    const refused = refusal(host, address);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

function refusal(host: string, address: string): AddressRefused | undefined {
  const range = privateRange(address);
  return range === undefined ? undefined : new AddressRefused(host, address, range);
}

function notFound(host: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`DNS returned no address for the host name ${host}`), { code: 'ENOTFOUND' });
}

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

/** Converts `::127.0.0.1` to `::7f00:1`. The address parser would take the first form for an IPv4-mapped address, but the operating system does not. */
function withoutDottedTail(address: string): string {
  const tail = address.slice(address.lastIndexOf(':') + 1);
  if (tail === address || isIP(tail) !== 4) return address;
  const [a, b, c, d] = new Uint8Array(tail.split('.').map(Number));
  if (a === undefined || b === undefined || c === undefined || d === undefined) return address;
  return `${address.slice(0, -tail.length)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}
