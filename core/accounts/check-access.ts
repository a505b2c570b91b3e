import { fail, type GatewayError, invalidParam } from '../base/errors';
import { type AddressRange, isWithin, readAddressRange } from '../http/address-ranges';
import type { KeyAccess } from '../ledger/key-access';

/** The parts of a request that decide whether it may use the key: the secret's hash and the client's address. */
export interface Shown {
  /** The SHA-256 of the secret that the request sent. */
  readonly hash: string;
  /** The client's address, as the setting `proxies` determines it; undefined if the proxies in front of the gateway do not report it. */
  readonly address: string | undefined;
}

/** The error codes for a request with an existing key that it may not use. */
const REFUSALS: readonly string[] = ['INVALID_API_KEY', 'API_KEY_EXPIRED', 'ADDRESS_NOT_ALLOWED'];

const ADDRESS_EXPECTED =
  "expected an address from each proxy (proxies.count of system.config.yml), because the key's addresses are limited";

/** Returns whether a request was refused because of its key. Such a request is in no account's usage records. */
export function isKeyRefusal({ code }: GatewayError): boolean {
  return REFUSALS.includes(code);
}

/** Returns the error if a request may not use its key; undefined if it may. */
export function refusalOfKey(
  { secrets, expiresAtMs, memberUntilMs, addresses }: KeyAccess,
  shown: Shown | undefined,
  nowMs: number,
): GatewayError | undefined {
  if (shown !== undefined && secrets !== undefined && shown.hash !== secrets.current) {
    if (shown.hash !== secrets.previous) return fail('INVALID_API_KEY');
    if (nowMs >= secrets.previousUntilMs)
      return expired('This secret of the API key was replaced, and it', secrets.previousUntilMs);
  }
  if (expiresAtMs !== undefined && nowMs >= expiresAtMs) return expired('The API key', expiresAtMs);
  if (memberUntilMs !== undefined && nowMs >= memberUntilMs) return fail('INVALID_API_KEY');
  if (shown === undefined || addresses === undefined) return undefined;
  const { address } = shown;
  if (address === undefined) return invalidParam('X-Forwarded-For', ADDRESS_EXPECTED);
  if (isWithin(address, rangesOf(addresses))) return undefined;
  return fail('ADDRESS_NOT_ALLOWED', { message: `This key may not be used from ${address}.`, details: { address } });
}

function expired(what: string, atMs: number): GatewayError {
  const expiredAt = new Date(atMs).toISOString();
  return fail('API_KEY_EXPIRED', {
    message: `${what} expired at ${expiredAt}. Use a valid key.`,
    details: { expiredAt },
  });
}

/** Parsed address ranges, by the list in a key's settings. All calls of a key share its settings on a node, so that each list is parsed once. */
const READ = new WeakMap<readonly string[], readonly AddressRange[]>();

function rangesOf(addresses: readonly string[]): readonly AddressRange[] {
  const known = READ.get(addresses);
  if (known !== undefined) return known;
  const ranges = addresses.map(readAddressRange).filter((range) => range !== undefined);
  READ.set(addresses, ranges);
  return ranges;
}
