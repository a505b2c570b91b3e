import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { fail, type GatewayError } from '../errors';
import { clientAddress } from '../http/client-place';
import type { Proxies } from '../http/proxies';
import type { KeySettings, Ledger } from '../ledger/ledger';
import type { Payer } from '../ledger/payer';
import { askLedger, ledgerUnavailable } from '../ledger/unavailable';
import { refusalOfKey, type Shown } from './check-access';
import { API_KEY_LENGTH, hashApiKey, isApiKey, looksLikeApiKey } from './key-format';
import { UnknownKeys } from './unknown-keys';

/** Which key a request shows, and whose it is. */
export interface CallKey extends Payer {
  /** The node's copy of the key's settings; reserve says when it is stale. */
  readonly settings: KeySettings;
  /** Absent where a policy of another package has found the key by itself. */
  readonly shown?: Shown;
}

/** Finds and remembers keys. A key that is found stays found, because the index never changes; one that is not, is for 5 s. */
export interface ApiKeys {
  /**
   * Who shows which key, in `x-api-key`, `Authorization: Bearer` or `svc-key`.
   * @throws GatewayError INVALID_API_KEY (one message for all reasons), API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED, LEDGER_UNAVAILABLE
   */
  identify(request: IncomingMessage): Promise<CallKey>;
  /**
   * Reads the key in the ledger; answers it with its newest settings, which are kept.
   * @throws GatewayError INVALID_API_KEY when it is revoked, API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED, LEDGER_UNAVAILABLE
   */
  confirm(key: CallKey): Promise<CallKey>;
  /** Says that this key was just made on this node, so that it is found even if it was asked for before. */
  made(shown: string): void;
  /**
   * Confirms the key of a call that was refused, and counts the call for the key's limit by the minute.
   * @throws GatewayError as `confirm`, and KEY_RATE_LIMITED when the limit was used up before
   */
  countRefused(key: CallKey): Promise<void>;
  /**
   * Keeps newer settings, so that the next call decides by them.
   * @throws GatewayError INVALID_API_KEY, API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED when they do not allow this one
   */
  remember(key: CallKey, settings: KeySettings): CallKey;
}

export interface ApiKeysOptions {
  readonly ledger: Pick<Ledger, 'findKey' | 'readKey' | 'countRefused'>;
  readonly log: Logger;
  readonly proxies: Proxies;
  /** Keys remembered at most; the one not used for longest is forgotten first. */
  readonly maxRemembered?: number;
  readonly unknown?: UnknownKeys;
  readonly now?: () => number;
}

/** What a node knows of a key it has not asked about: reserve answers `stale_key` with more if there is more. */
const PLAIN: KeySettings = { rev: 0, name: '', allowedModels: undefined };

/** How long a node that refuses a key by what it has just read of it does not read it again. */
const BELIEVED_MS = 1_000;

/** A secret that is known. */
interface Remembered extends Payer {
  readonly hash: string;
  settings: KeySettings;
  readAtMs: number;
}

export function openApiKeys({
  ledger,
  log,
  proxies,
  maxRemembered = 50_000,
  unknown = new UnknownKeys(),
  now = Date.now,
}: ApiKeysOptions): ApiKeys {
  // A Map keeps the order of insertion: putting a used entry at the end makes the first one the one to forget.
  const byHash = new Map<string, Remembered>();

  function recall(hash: string): Remembered | undefined {
    const entry = byHash.get(hash);
    if (entry === undefined) return undefined;
    byHash.delete(hash);
    byHash.set(hash, entry);
    return entry;
  }

  function keep(entry: Remembered): Remembered {
    byHash.set(entry.hash, entry);
    if (byHash.size > maxRemembered) forgetOldest();
    return entry;
  }

  function forgetOldest(): void {
    const [oldest] = byHash.keys();
    if (oldest !== undefined) byHash.delete(oldest);
  }

  async function find(shown: string, hash: string): Promise<Remembered> {
    if (!isApiKey(shown) || unknown.has(hash)) throw invalidKey();
    const found = await askLedger(() => ledger.findKey(hash));
    if (found.outcome === 'unknown') unknown.add(hash);
    if (found.outcome !== 'found') throw found.outcome === 'unknown' ? invalidKey() : ledgerUnavailable();
    log.debug({ keyId: found.keyId }, 'first call of a key on this node');
    // A call that came at the same time may have been faster, and may have learned newer settings since.
    const { accountId, keyId } = found;
    return recall(hash) ?? keep({ hash, accountId, keyId, settings: PLAIN, readAtMs: Number.NEGATIVE_INFINITY });
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

  async function confirm(key: CallKey): Promise<CallKey> {
    const state = await askLedger(() => ledger.readKey(key));
    if (state?.status !== 'active') throw invalidKey();
    return remember(key, state.settings);
  }

  return {
    identify: async (request) => {
      const shown = shownKey(request.rawHeaders);
      if (shown === undefined || shown.length !== API_KEY_LENGTH) throw invalidKey();
      const hash = hashApiKey(shown);
      const entry = recall(hash) ?? (await find(shown, hash));
      const { accountId, keyId, settings } = entry;
      const key: CallKey = { accountId, keyId, settings, shown: { hash, address: clientAddress(request, proxies) } };
      const refusal = settings.access && refusalOfKey(settings.access, key.shown, now());
      if (refusal === undefined) return key;
      // An operator may have allowed more meanwhile.
      if (Math.abs(now() - entry.readAtMs) < BELIEVED_MS) throw refusal;
      return confirm(key);
    },

    confirm,

    made: (shown) => unknown.forget(hashApiKey(shown)),

    countRefused: async (key) => {
      const state = await askLedger(() => ledger.readKey(key));
      if (state?.status !== 'active') throw invalidKey();
      remember(key, state.settings);
      if (state.callsPerMinute === undefined) return;
      const counted = await askLedger(() => ledger.countRefused(key));
      if (counted.outcome === 'rate_limited') throw rateLimited(counted.retryAfterMs);
    },

    remember,
  };
}

/** The key's own limit by the minute is used up. */
export function rateLimited(retryAfterMs: number): GatewayError {
  return fail('KEY_RATE_LIMITED', { retryAfterSeconds: Math.ceil(retryAfterMs / 1_000) });
}

/**
 * Returns the one key a request shows; undefined when it shows none, or different ones. Only credentials that look like a key
 * count: agents send that of another service beside ours. Reads the raw headers, because Node drops a second `authorization`
 * from the parsed ones and joins a second `x-api-key` to the first.
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

/** Returns the credential in one header; undefined when the header has another purpose. Lengths first: this runs for every header. */
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

/** Returns what follows `Bearer`. A header without the scheme keeps a space before it, so that a bare key is malformed. */
function bearerToken(value: string): string {
  return /^bearer +(.*)$/i.exec(value)?.[1] ?? ` ${value}`;
}

/** One message for all reasons: whoever tries keys learns nothing from it. */
function invalidKey(): GatewayError {
  return fail('INVALID_API_KEY');
}
