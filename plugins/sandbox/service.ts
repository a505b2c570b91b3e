import { join } from 'node:path';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { fail } from '../../core/base/errors';
import { readRole } from '../../core/base/role';
import { compileCheck } from '../../core/base/settings';
import { StartFailure } from '../../core/base/start-failure';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import type { Limits, Timings } from './lifecycle/settings';
import { type OfferedInstance, type OfferingsSection, readOfferings } from './offerings/offering';
import { Changes } from './store/changes';
import { DatabaseClock } from './store/database-clock';
import { Places } from './store/places';
import { OperationSpans } from './store/queries';
import { openSandboxStore, type SandboxStore } from './store/sandbox-store';
import { findSupplier, type SupplierContext, type SupplierDriver, supplierNames } from './suppliers/supplier';

/** The common service of the plugin's routes and loops. */
export class SandboxService {
  readonly database: Knex;
  readonly log: Logger;
  readonly clock: DatabaseClock;
  /** Returns the database's time in milliseconds since 1970. Use it for every time that is stored or compared with a stored one. */
  readonly now: () => number;
  readonly store: SandboxStore;
  readonly spans = new OperationSpans();
  readonly changes: Changes;
  /** The open suppliers, by name. */
  readonly drivers = new Map<string, SupplierDriver>();
  readonly health = new SupplierHealth();
  readonly places: Places;
  /** Whether this process creates instances and visits sandboxes. Otherwise other processes do. */
  readonly isWorker = readRole(process.env) !== 'gateway';

  constructor(
    readonly gateway: PluginGateway,
    readonly timings: Timings,
    readonly limits: Limits,
  ) {
    this.database = gateway.database;
    this.log = gateway.log;
    this.clock = new DatabaseClock(this.database);
    this.now = this.clock.now;
    this.changes = new Changes(this.database, this.log);
    this.places = new Places(this);
    this.store = openSandboxStore(this.database, this.changes.announce, this.places);
  }

  /** Returns the offerings of the configuration in force. If `section` (a function that returns a section by name) is given, it reads another configuration. */
  offerings(section: (name: string) => unknown = (name) => this.gateway.section(name)): readonly OfferedInstance[] {
    const holdSeconds = (this.timings.holdAheadMs + this.timings.endingReserveMs) / 1_000;
    return readOfferings(section('offerings') as OfferingsSection | undefined, this.drivers, holdSeconds);
  }

  /** Returns the driver of a supplier. @throws SUPPLIER_UNAVAILABLE */
  readonly driverOf = (supplier: string): SupplierDriver => {
    const driver = this.drivers.get(supplier);
    if (driver === undefined) throw fail('SUPPLIER_UNAVAILABLE', { retryAfterSeconds: 30 });
    return driver;
  };

  /** Throws unless the supplier is open and has answered recently. @throws SUPPLIER_UNAVAILABLE */
  requireSupplier(supplier: string): void {
    this.driverOf(supplier);
    if (this.health.isDown(supplier)) throw fail('SUPPLIER_UNAVAILABLE', { retryable: true, retryAfterSeconds: 10 });
  }
}

const DOWN_AFTER_FAILURES = 3;
const DOWN_FOR_MS = 30_000;

/** Records whether suppliers answer this process. A supplier that fails repeatedly gets no new instances for a while. */
class SupplierHealth {
  readonly #silent = new Map<string, { failures: number; lastAtMs: number }>();

  answered(supplier: string): void {
    this.#silent.delete(supplier);
  }

  failed(supplier: string): void {
    const failures = (this.#silent.get(supplier)?.failures ?? 0) + 1;
    this.#silent.set(supplier, { failures, lastAtMs: performance.now() });
  }

  isDown(supplier: string): boolean {
    const silent = this.#silent.get(supplier);
    if (silent === undefined || silent.failures < DOWN_AFTER_FAILURES) return false;
    return performance.now() < silent.lastAtMs + DOWN_FOR_MS;
  }
}

/** A supplier's section in system.config.yml: `driver`, and the driver's own settings. */
export type SupplierSettings = { readonly driver: string } & Readonly<Record<string, unknown>>;

/**
 * Opens every configured supplier. Each gets a folder of its own in the data folder.
 * @throws StartFailure that names the supplier and what is wrong with it
 */
export async function openSuppliers(
  suppliers: Readonly<Record<string, SupplierSettings>>,
  context: SupplierContext,
): Promise<Map<string, SupplierDriver>> {
  const drivers = new Map<string, SupplierDriver>();
  for (const [name, settings] of Object.entries(suppliers))
    drivers.set(name, await openSupplier(name, settings, context));
  return drivers;
}

async function openSupplier(
  name: string,
  { driver, ...settings }: SupplierSettings,
  { log, dataFolder }: SupplierContext,
): Promise<SupplierDriver> {
  const where = `system.config.yml: plugins.sandbox.suppliers.${name}`;
  const kind = findSupplier(driver);
  if (kind === undefined)
    throw new StartFailure(`${where}: driver "${driver}" does not exist; known: ${supplierNames().join(', ')}`);
  const checked = compileCheck<never>(kind.schema)(settings);
  if ('problems' in checked) {
    throw new StartFailure(
      checked.problems.map(({ path, message }) => `${[where, ...path].join('.')}: ${message}`).join('\n'),
    );
  }
  const own = { log: log.child({ supplier: name }), dataFolder: join(dataFolder, 'suppliers', name) };
  const opened = await kind.open(checked.value, own).catch((cause: unknown) => {
    throw cause instanceof StartFailure ? new StartFailure(`${where}: ${cause.message}`, { cause }) : cause;
  });
  if (opened.capabilities.uniqueName) return opened;
  await opened.close();
  throw new StartFailure(
    `${where}: the driver "${driver}" cannot name its instances uniquely (capabilities.uniqueName): after a lost answer the gateway could not find the instance and would create a second one.`,
  );
}
