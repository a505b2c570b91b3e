import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { ApiKeys } from './api-keys';
import type { Catalog } from './catalog';
import type { Egress } from './egress';
import type { Leases } from './ledger/leases';
import type { Ledger } from './ledger/ledger';
import type { Settler } from './ledger/settler';
import type { RefusedCalls } from './refused-calls';
import type { UpstreamHealth } from './upstream-health';

/** What a process has open while it runs; handed to policies and plugins when they are prepared. */
export interface Gateway {
  readonly ledger: Ledger;
  readonly database: Knex;
  readonly keys: ApiKeys;
  readonly egress: Egress;
  readonly settler: Settler;
  readonly leases: Leases;
  readonly health: UpstreamHealth;
  readonly refusedCalls: RefusedCalls;
  readonly log: Logger;
  /** The models and upstreams of the configuration this object was made for. */
  readonly catalog: Catalog;
  readonly configRevision: string;
  /**
   * A plugin's own part of gateway.config.yml, checked and with its defaults; undefined while the key is not there. `T` is the
   * schema's `Settings`.
   */
  section<T>(name: string): T | undefined;
  /** True from the first signal to stop on: no new calls are taken. */
  readonly isDraining: () => boolean;
}
