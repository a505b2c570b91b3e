import { fail, type GatewayError } from '../errors';
import { type AddressRange, isWithin, readAddressRange } from '../http/address-ranges';
import type { KeyAccess } from '../ledger/key-access';

/** What a request shows of itself beside whose key it has. */
export interface Shown {
  /** SHA-256 of the secret. */
  readonly hash: string;
  /** Of the client, as `proxies` says. */
  readonly address: string;
}

/** Codes of a request that shows a right key and may not use it. */
const REFUSALS: readonly string[] = ['INVALID_API_KEY', 'API_KEY_EXPIRED', 'ADDRESS_NOT_ALLOWED'];

/** Whether a request was refused for its key: then it is nobody's call. */
export function isKeyRefusal({ code }: GatewayError): boolean {
  return REFUSALS.includes(code);
}

/** Returns why a key may not be used as it is shown; undefined when it may. */
export function refusalOfKey(
  { secrets, expiresAtMs, addresses }: KeyAccess,
  shown: Shown | undefined,
  nowMs: number,
): GatewayError | undefined {
  if (shown !== undefined && secrets !== undefined && shown.hash !== secrets.current) {
    if (shown.hash !== secrets.previous) return fail('INVALID_API_KEY');
    if (nowMs >= secrets.previousUntilMs)
      return expired('This secret of the API key was replaced, and it', secrets.previousUntilMs);
  }
  if (expiresAtMs !== undefined && nowMs >= expiresAtMs) return expired('The API key', expiresAtMs);
  if (shown === undefined || addresses === undefined || isWithin(shown.address, rangesOf(addresses))) return undefined;
  const { address } = shown;
  return fail('ADDRESS_NOT_ALLOWED', { message: `This key may not be used from ${address}.`, details: { address } });
}

function expired(what: string, atMs: number): GatewayError {
  const expiredAt = new Date(atMs).toISOString();
  return fail('API_KEY_EXPIRED', {
    message: `${what} expired at ${expiredAt}. Use a valid key.`,
    details: { expiredAt },
  });
}

/** Ranges that were read before, by the list of a key's settings: a node keeps those of each key for all of its calls. */
const READ = new WeakMap<readonly string[], readonly AddressRange[]>();

function rangesOf(addresses: readonly string[]): readonly AddressRange[] {
  const known = READ.get(addresses);
  if (known !== undefined) return known;
  const ranges = addresses.map(readAddressRange).filter((range) => range !== undefined);
  READ.set(addresses, ranges);
  return ranges;
}
