import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { fail, type GatewayError } from '../base/errors';
import type { MaybeLater } from '../base/maybe-later';
import { RecentlyUsed } from '../base/recently-used';
import { clientAddress, type Proxies } from '../http/proxies';
import { oncePerHead } from '../http/repeated-head';
import type { KeySettings, Ledger, Payer } from '../ledger/ledger';
import { askLedger, ledgerUnavailable } from '../ledger/unavailable';
import { refusalOfKey, type Shown } from './check-access';
import { API_KEY_LENGTH, hashApiKey, isApiKey, looksLikeApiKey } from './key-format';
import type { KeyRates } from './rates';

/** The API key that a request sent, and the account of the key. */
export interface CallKey extends Payer {
  /** This node's cached copy of the key's settings. When a call reserves money, the ledger reports whether the copy is outdated. */
  readonly settings: KeySettings;
  /** What the request sent to identify the key. Absent if a policy of another package identified the key itself. */
  readonly shown?: Shown;
}

/** Finds and caches keys. A found secret stays cached, because it never belongs to another key. An unknown secret is cached as unknown for 5 s. */
export interface ApiKeys {
  /** How many keys an account may create, and how many requests a key may send to the gateway's own API. */
  readonly rates: KeyRates;
  /**
   * Finds the key that a request sends in `x-api-key`, `Authorization: Bearer` or `svc-key`.
   * @throws GatewayError INVALID_API_KEY (one message for all reasons), API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED, LEDGER_UNAVAILABLE
   */
  identify(request: IncomingMessage): MaybeLater<CallKey>;
  /**
   * Reads the key in the ledger, caches its newest settings and returns the key with them.
   * @throws GatewayError INVALID_API_KEY if the key is revoked, API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED, LEDGER_UNAVAILABLE
   */
  confirm(key: CallKey): Promise<CallKey>;
  /** Records that this node has just created a key. Requests then find the key at once, even if it was cached as unknown. */
  made(shown: string): void;
  /**
   * Confirms the key of a call without a hold, counts the call towards the key's limit per minute, and returns the key with its newest
   * settings.
   * @throws GatewayError as `confirm` does; KEY_RATE_LIMITED if the limit was already reached
   */
  countCall(key: CallKey): Promise<CallKey>;
  /**
   * Confirms the key of a request to the gateway's own API, and counts the request.
   * @throws GatewayError as `confirm` does; KEY_RATE_LIMITED if the key has sent too many requests
   */
  admitRequest(key: CallKey): Promise<CallKey>;
  /**
   * Caches newer settings of a key, which then apply to the next call.
   * @throws GatewayError INVALID_API_KEY, API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED if the settings do not allow this call
   */
  remember(key: CallKey, settings: KeySettings): CallKey;
}

interface ApiKeysOptions {
  readonly ledger: Pick<Ledger, 'findKey' | 'readKey' | 'countRefused' | 'countRequest'>;
  readonly rates: KeyRates;
  readonly log: Logger;
  readonly proxies: Proxies;
  /** The smallest number of recently used keys that stay cached. */
  readonly leastRemembered?: number;
  readonly now?: () => number;
}

/**
 * The settings that a node assumes for a key it has not read. If the ledger has newer settings, it answers a reservation with `stale_key`
 * and those settings.
 */
const PLAIN: KeySettings = { rev: 0, name: '', allowedModels: undefined };

/** How long a node refuses requests by the cached settings of a key before it reads the key again, in ms. */
const BELIEVED_MS = 1_000;

/** A cached secret, as its hash, with its key and the key's settings. */
interface Remembered extends Payer {
  readonly hash: string;
  settings: KeySettings;
  readAtMs: number;
}

export function openApiKeys({
  ledger,
  rates,
  log,
  proxies,
  leastRemembered = 50_000,
  now = Date.now,
}: ApiKeysOptions): ApiKeys {
  const byHash = new RecentlyUsed<Remembered>(leastRemembered);
  /** The time until which the node does not ask the ledger again about an unknown hash. A misconfigured client often repeats the same wrong key. */
  const unknownUntilMs = new RecentlyUsed<number>(MIN_UNKNOWN);

  function isUnknown(hash: string): boolean {
    const leftMs = (unknownUntilMs.get(hash) ?? 0) - now();
    // An entry that ends later than `UNKNOWN_FOR_MS` from now means that the clock was set back. The entry then no longer counts.
    return leftMs > 0 && leftMs <= UNKNOWN_FOR_MS;
  }

  async function find(hash: string): Promise<Remembered> {
    const answer = await askLedger(() => ledger.findKey(hash));
    if (answer.outcome === 'unknown') unknownUntilMs.set(hash, now() + UNKNOWN_FOR_MS);
    if (answer.outcome !== 'found') throw answer.outcome === 'unknown' ? invalidKey() : ledgerUnavailable();
    log.debug({ keyId: answer.keyId }, 'a key was used on this node for the first time');
    // A concurrent call may have cached the key first, perhaps with newer settings, so its entry is used.
    const { accountId, keyId } = answer;
    const known = byHash.get(hash);
    if (known !== undefined) return known;
    return byHash.set(hash, { hash, accountId, keyId, settings: PLAIN, readAtMs: Number.NEGATIVE_INFINITY });
  }

  function remember(key: CallKey, settings: KeySettings): CallKey {
    const { shown } = key;
    const entry = shown && byHash.get(shown.hash);
    const known = entry?.settings ?? key.settings;
    const newest = settings.rev > known.rev ? settings : known;
    if (entry !== undefined) {
      entry.settings = newest;
      entry.readAtMs = now();
    }
    const refusal = newest.access && refusalOfKey(newest.access, shown, now());
    if (refusal !== undefined) throw refusal;
    return newest === key.settings ? key : { ...key, settings: newest };
  }

  /** Returns the key if its settings allow the request. If they do not and were read more than a second ago, reads them again before refusing the request. */
  function admitted(entry: Remembered, request: IncomingMessage): MaybeLater<CallKey> {
    const { accountId, keyId, settings, hash } = entry;
    const key: CallKey = { accountId, keyId, settings, shown: { hash, address: clientAddress(request, proxies) } };
    const refusal = settings.access && refusalOfKey(settings.access, key.shown, now());
    if (refusal === undefined) return key;
    // Reads the key again unless it was read just now, because an operator may have lifted the restriction.
    if (Math.abs(now() - entry.readAtMs) < BELIEVED_MS) throw refusal;
    return confirm(key);
  }

  async function confirm(key: CallKey): Promise<CallKey> {
    const state = await askLedger(() => ledger.readKey(key));
    if (state?.status !== 'active') throw invalidKey();
    return remember(key, state.settings);
  }

  return {
    rates,

    identify: (request) => {
      const { key, hash } = shownIn(request);
      if (hash === undefined) throw invalidKey();
      const entry = byHash.get(hash);
      if (entry !== undefined) return admitted(entry, request);
      if (!isApiKey(key) || isUnknown(hash)) throw invalidKey();
      return find(hash).then((found) => admitted(found, request));
    },

    confirm,

    made: (shown) => void unknownUntilMs.set(hashApiKey(shown), 0),

    countCall: async (key) => {
      const state = await askLedger(() => ledger.readKey(key));
      if (state?.status !== 'active') throw invalidKey();
      const newest = remember(key, state.settings);
      if (state.callsPerMinute === undefined) return newest;
      const counted = await askLedger(() => ledger.countRefused(key));
      if (counted.outcome === 'rate_limited') throw rateLimited(counted.retryAfterMs);
      return newest;
    },

    admitRequest: async (key) => {
      const { requestsPerMinute } = rates;
      const confirmed = await confirm(key);
      // A read-only ledger can confirm keys but cannot count requests. A request that cannot be counted is admitted.
      const counted = await ledger.countRequest(key, requestsPerMinute).catch(() => undefined);
      if (counted?.outcome !== 'rate_limited') return confirmed;
      throw rateLimited(
        counted.retryAfterMs,
        `The key has sent ${requestsPerMinute} requests to this API within a minute, beside model calls. Retry after \`Retry-After\`.`,
      );
    },

    remember,
  };
}

/** Returns the error for a key that has reached its limit per minute. */
export function rateLimited(retryAfterMs: number, message?: string): GatewayError {
  const retryAfterSeconds = Math.ceil(retryAfterMs / 1_000);
  return fail('KEY_RATE_LIMITED', message === undefined ? { retryAfterSeconds } : { retryAfterSeconds, message });
}

/** Returns the key that a request sent, with its hash. The hash is absent if the text cannot be a key. */
const shownIn = oncePerHead(({ rawHeaders }): { readonly key: string; readonly hash?: string } => {
  const key = shownKey(rawHeaders);
  return key?.length === API_KEY_LENGTH ? { key, hash: hashApiKey(key) } : { key: '' };
});

/**
 * Returns the only key that a request sends; undefined if it sends none or several. Ignores credentials that do not look like the gateway's
 * keys, because agents also send credentials of other services. Reads the raw headers, because Node drops a second `authorization` from the
 * parsed ones and joins a second `x-api-key` to the first.
 */
function shownKey(rawHeaders: readonly string[]): string | undefined {
  let shown: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const value = credentialIn(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '');
    if (value === undefined || !looksLikeApiKey(value)) continue;
    if (shown !== undefined && shown !== value) return undefined;
    shown = value;
  }
  return shown;
}

/**
 * Returns the credential in a header; undefined if the header carries none. Compares the name's length first, for speed, because this runs
 * for every header.
 */
function credentialIn(name: string, value: string): string | undefined {
  switch (name.length) {
    case 7:
      return name.toLowerCase() === 'svc-key' ? value : undefined;
    case 9:
      return name.toLowerCase() === 'x-api-key' ? value : undefined;
    case 13:
      return name.toLowerCase() === 'authorization' ? bearerToken(value) : undefined;
    default:
      return undefined;
  }
}

/** Returns the token after `Bearer`. Returns a value without `Bearer` with a leading space, so that the format check rejects it. */
function bearerToken(value: string): string {
  return /^bearer +(.*)$/i.exec(value)?.[1] ?? ` ${value}`;
}

/** Returns an error with one message for all reasons, because a client that guesses keys must not learn the reason. */
function invalidKey(): GatewayError {
  return fail('INVALID_API_KEY');
}

/** How long a key is cached as unknown, in ms. */
const UNKNOWN_FOR_MS = 5_000;
const MIN_UNKNOWN = 10_000;
