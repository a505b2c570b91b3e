import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { ApiKeys } from '../accounts/identify';
import type { AnswerStore } from '../calls/answer-store';
import type { RefusedCalls } from '../calls/refused-calls';
import type { SessionIds } from '../calls/session-ids';
import type { VendorResources } from '../calls/vendor-resources';
import type { Catalog } from '../catalog/catalog';
import type { Configuration } from '../configuration/configuration';
import type { UpstreamHealth } from '../health/health';
import type { Leases } from '../ledger/leases';
import type { Calls, Ledger } from '../ledger/ledger';
import type { Settler } from '../ledger/settler';
import type { LiveRollouts } from '../rollouts/live-rollouts';
import type { Egress } from '../wire/egress';

/** The parts of the process and the configuration that a policy receives when it is prepared. */
export interface Gateway extends Configured {
  /** The ledger operations for the money of calls. They use this node's allowances if it has any. */
  readonly calls: Calls;
  /** The ledger that all nodes share, for all operations except those of calls. */
  readonly ledger: Ledger;
  readonly database: Knex;
  readonly keys: ApiKeys;
  readonly egress: Egress;
  readonly settler: Settler;
  readonly leases: Leases;
  readonly health: UpstreamHealth;
  readonly rollouts: LiveRollouts;
  readonly refusedCalls: RefusedCalls;
  /** Converts the session names of clients into the ids that usage records keep and vendors receive. */
  readonly sessionIds: SessionIds;
  readonly vendorResources: VendorResources;
  /** The answers for clients that repeat a call with its Idempotency-Key; undefined if the operator has not enabled the store. */
  readonly answers?: AnswerStore | undefined;
  readonly log: Logger;
  /** Returns true after the first stop signal. The process then accepts no new calls. */
  readonly isStopping: () => boolean;
  /** Returns true while too many outbox entries wait for Postgres. The gateway then refuses new calls, but still settles open ones. */
  readonly isOutboxFull: () => boolean;
}

/** A configuration, and direct access to its most used parts. */
export interface Configured<C extends Configuration = Configuration> {
  readonly configuration: C;
  readonly catalog: Catalog;
  readonly configRevision: string;
  /**
   * Returns a plugin's own section of gateway.config.yml, validated and with defaults filled in; undefined if the file lacks it. `T` is the
   * schema's `Settings`.
   */
  section<T>(name: string): T | undefined;
}

/** Returns an object with the given parts and the configuration in force. It calls `read` at each use, because reloads replace the configuration. */
export function withConfiguration<Parts extends object, C extends Configuration>(
  parts: Parts,
  read: () => C,
): Parts & Configured<C> {
  return {
    ...parts,
    get configuration() {
      return read();
    },
    get catalog() {
      return read().catalog;
    },
    get configRevision() {
      return read().revision;
    },
    section: <T>(name: string) => read().sections.get(name) as T | undefined,
  };
}
