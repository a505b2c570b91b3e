import { type LookupAddress, lookup as lookupInDns } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { privateRange } from './address-check';

/** Resolves all addresses of a host, once per connection: a second lookup could give others. */
export type Resolve = (
  host: string,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export const resolveInDns: Resolve = (host, done) => lookupInDns(host, { all: true, order: 'verbatim' }, done);

/** An upstream's host is, or resolves to, an address that is not public, and its entry does not say `allowPrivate`. */
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

/** With several addresses, how long one is tried before the next. Node's 250 ms gives up on a distant host too early. */
const NEXT_ADDRESS_AFTER_MS = 1_000;

/**
 * Dials for undici. The addresses that are checked are the ones that are dialled, because the socket is given them in
 * place of a lookup of its own; the TLS server name stays the host.
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
    // Node asks no lookup for an IP literal, so it is checked here.
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

/** One address that is not public refuses the host: its answers are not to be trusted. */
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
  return Object.assign(new Error(`the host name ${host} has no address`), { code: 'ENOTFOUND' });
}
