import { type LookupAddress, lookup as lookupInDns } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { privateRange } from './address-check';

/** Resolves all addresses of a host, once for each connection. A second lookup could return other addresses. */
export type Resolve = (
  host: string,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export const resolveInDns: Resolve = (host, done) => lookupInDns(host, { all: true, order: 'verbatim' }, done);

/**
 * The host of an upstream is an address that is not public, or resolves to one, and its configuration does not have
 * `allowPrivate`.
 */
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
 * Opens connections for undici. It connects to the addresses that it has checked, because the socket does no lookup of its own.
 * The TLS server name stays the host.
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
    // Node does not call `lookup` for an IP literal, so it is checked here.
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

/** One address that is not public makes all answers of this host untrustworthy. */
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
