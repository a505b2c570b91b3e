import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { ApiKeys } from './api-keys';
import type { Catalog } from './catalog';
import type { ChangeCheck } from './change-checks';
import type { Configuration } from './configuration';
import type { ConfigurationSource } from './configuration-source';
import type { Egress } from './egress';
import type { Leases } from './ledger/leases';
import type { Ledger } from './ledger/ledger';
import type { Settler } from './ledger/settler';
import type { LiveConfiguration } from './live-configuration';
import type { LiveRollouts } from './live-rollouts';
import type { OpenCalls } from './open-calls';
import type { Route } from './plugin';
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
  readonly rollouts: LiveRollouts;
  readonly refusedCalls: RefusedCalls;
  readonly openCalls: OpenCalls;
  readonly log: Logger;
  /** The folder of this process's own data, absolute. */
  readonly dataFolder: string;
  /** How many proxies the operator says stand in front. */
  readonly proxies: number;
  /** Policies have the configuration they were prepared for; plugins have the one in force at the moment they ask. */
  readonly configuration: Configuration;
  /** The configuration's models and upstreams. */
  readonly catalog: Catalog;
  readonly configRevision: string;
  readonly liveConfiguration: LiveConfiguration;
  readonly configurationSource: ConfigurationSource;
  /** Asked before a revision is applied. */
  readonly changeChecks: ChangeCheck[];
  /** The endpoints of all plugins. */
  readonly routes: () => readonly Route[];
  /**
   * A plugin's own part of gateway.config.yml, checked and with its defaults; undefined while the key is not there. `T` is the
   * schema's `Settings`.
   */
  section<T>(name: string): T | undefined;
  /** How long a policy that does not bound its own waiting may take for its step. */
  readonly stepTimeoutMs: number;
  /** True from the first signal to stop on: no new calls are taken. */
  readonly isDraining: () => boolean;
  /** Too much waits for Postgres: new calls are refused, those that are open are settled. */
  readonly isOutboxFull: () => boolean;
}

/** All that does not change with the configuration. */
export type GatewayParts = Omit<Gateway, 'configuration' | 'catalog' | 'configRevision' | 'section'>;

/** The parts with one configuration for ever, or with the one that `read` gives each time. */
export function withConfiguration(parts: GatewayParts, read: () => Configuration): Gateway {
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
