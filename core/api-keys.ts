import type { IncomingMessage } from 'node:http';
import type { CallKey } from './call';
import type { KeySettings } from './ledger/ledger';

/** Finds and remembers keys. Only hits are cached: the index is immutable, so a hit never goes stale. */
export interface ApiKeys {
  /**
   * Who shows which key, in `x-api-key`, `Authorization: Bearer` or `svc-key`.
   * @throws GatewayError INVALID_API_KEY (one message for all reasons), LEDGER_UNAVAILABLE
   */
  identify(request: IncomingMessage): Promise<CallKey>;
  /** Reads the key's status in the ledger. @throws INVALID_API_KEY when it is revoked, LEDGER_UNAVAILABLE */
  confirm(key: CallKey): Promise<void>;
  /** Keeps newer settings, so that the next call decides by them. */
  remember(key: CallKey, settings: KeySettings): CallKey;
}
