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

/** The parts of the process and the configuration that a policy gets when it is prepared. */
export interface Gateway extends Configured {
  /** The money of calls; over allowances where the node has them. */
  readonly calls: Calls;
  /** The ledger that all nodes share, for everything but calls. */
  readonly ledger: Ledger;
  readonly database: Knex;
  readonly keys: ApiKeys;
  readonly egress: Egress;
  readonly settler: Settler;
  readonly leases: Leases;
  readonly health: UpstreamHealth;
  readonly rollouts: LiveRollouts;
  readonly refusedCalls: RefusedCalls;
  /** Returns names of clients as usage records keep them, and as vendors get them. */
  readonly sessionIds: SessionIds;
  readonly keptObjects: VendorResources;
  /** The answers for clients that repeat a call with its Idempotency-Key; undefined if the operator has not enabled the store. */
  readonly answers?: AnswerStore | undefined;
  readonly log: Logger;
  /** True from the first stop signal on. The process then accepts no new calls. */
  readonly isStopping: () => boolean;
  /** True while too many entries wait for Postgres. New calls are refused then, and open ones are settled. */
  readonly isOutboxFull: () => boolean;
}

/** A configuration and its most used parts. */
export interface Configured<C extends Configuration = Configuration> {
  readonly configuration: C;
  readonly catalog: Catalog;
  readonly configRevision: string;
  /**
   * Returns a plugin's own section of gateway.config.yml, checked and with its defaults; undefined if the file does not have it.
   * `T` is the schema's `Settings`.
   */
  section<T>(name: string): T | undefined;
}

/** Adds a configuration to the parts of a process. `read` returns the one in force at each use. */
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
