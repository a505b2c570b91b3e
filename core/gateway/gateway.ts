import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { ApiKeys } from '../accounts/identify';
import type { AnswerStore } from '../calls/answer-store';
import type { KeptObjects } from '../calls/kept-objects';
import type { RefusedCalls } from '../calls/refused-calls';
import type { SessionIds } from '../calls/session-ids';
import type { Catalog } from '../catalog/catalog';
import type { Configuration } from '../configuration/configuration';
import type { UpstreamHealth } from '../health/health';
import type { Leases } from '../ledger/leases';
import type { Ledger } from '../ledger/ledger';
import type { Settler } from '../ledger/settler';
import type { LiveRollouts } from '../rollouts/live-rollouts';
import type { Tracing } from '../traces/tracing';
import type { Egress } from '../wire/egress';

/** What policies are given when they are prepared: what the process has open, and the configuration they are prepared for. */
export interface Gateway extends Configured {
  readonly ledger: Ledger;
  readonly database: Knex;
  readonly keys: ApiKeys;
  readonly egress: Egress;
  readonly settler: Settler;
  readonly leases: Leases;
  readonly health: UpstreamHealth;
  readonly rollouts: LiveRollouts;
  readonly refusedCalls: RefusedCalls;
  /** What is recorded of the ids of sessions and agents. */
  readonly sessionIds: SessionIds;
  /** What vendors keep, and whose it is. */
  readonly keptObjects: KeptObjects;
  /** Answers for clients that repeat a call with its Idempotency-Key; undefined where the operator has not switched that on. */
  readonly answers?: AnswerStore | undefined;
  /** undefined: nothing is traced. */
  readonly tracing?: Tracing | undefined;
  readonly log: Logger;
  /** True from the first signal to stop on: no new calls are taken. */
  readonly isStopping: () => boolean;
  /** Too much waits for Postgres: new calls are refused, those that are open are settled. */
  readonly isOutboxFull: () => boolean;
}

/** A configuration, and what is most asked of it. */
export interface Configured<C extends Configuration = Configuration> {
  readonly configuration: C;
  /** The configuration's models and upstreams. */
  readonly catalog: Catalog;
  readonly configRevision: string;
  /**
   * A plugin's own part of gateway.config.yml, checked and with its defaults; undefined while the key is not there. `T` is the
   * schema's `Settings`.
   */
  section<T>(name: string): T | undefined;
}

/** Adds a configuration to what a process has open: the same one for ever, or the one that `read` returns each time. */
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
