import { join } from 'node:path';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { fail } from '../../core/errors';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { readPortDomain } from '../../core/http/public-url';
import type { Stop } from '../../core/resources';
import { readRole } from '../../core/role';
import { compileCheck } from '../../core/settings';
import { StartFailure } from '../../core/start-failure';
import { type Books, openBooks } from './books/books';
import { type Changes, openChanges } from './books/changes';
import { DatabaseClock } from './books/database-clock';
import { Places } from './books/places';
import { OperationSpans } from './books/store';
import { Commands } from './commands/commands';
import type { Limits, Timings } from './life/settings';
import { type OfferedInstance, type OfferingsSection, readOfferings } from './offers/offering';
import { PortProxy } from './ports/port-proxy';
import { findSupplier, type SupplierContext, type SupplierDriver, supplierNames } from './suppliers/supplier';

/** The service that the plugin's routes and loops use. */
export interface SandboxService {
  readonly gateway: PluginGateway;
  readonly database: Knex;
  readonly log: Logger;
  readonly timings: Timings;
  readonly limits: Limits;
  /** Returns the database's time in milliseconds since 1970. Use it for every time that is stored or compared with a stored one. */
  now(): number;
  readonly books: Books;
  readonly spans: OperationSpans;
  readonly changes: Changes;
  /** Returns the offerings of the configuration in force. */
  offerings(): readonly OfferedInstance[];
  /** Returns the offerings of another configuration, given by its sections. */
  offeringsOf(section: (name: string) => unknown): readonly OfferedInstance[];
  /** The open suppliers, by name. */
  readonly drivers: ReadonlyMap<string, SupplierDriver>;
  /** Returns the driver of a supplier. @throws SUPPLIER_UNAVAILABLE */
  driverOf(supplier: string): SupplierDriver;
  /** Throws unless the supplier is open and has answered recently. @throws SUPPLIER_UNAVAILABLE */
  requireSupplier(supplier: string): void;
  readonly health: SupplierHealth;
  readonly places: Places;
  /** Whether this process creates instances and visits sandboxes. Otherwise other processes do. */
  readonly isWorker: boolean;
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

export function createService(
  gateway: PluginGateway,
  timings: Timings,
  limits: Limits,
): SandboxService & { readonly drivers: Map<string, SupplierDriver>; readonly clock: DatabaseClock } {
  const drivers = new Map<string, SupplierDriver>();
  const holdSeconds = (timings.holdAheadMs + timings.endingReserveMs) / 1_000;
  const { database, log } = gateway;
  const changes = openChanges(database, log);
  const health = new SupplierHealth();
  const spans = new OperationSpans();
  const clock = new DatabaseClock(database);
  const places = new Places({ database, drivers, now: clock.now, timings });
  const offeringsOf: SandboxService['offeringsOf'] = (section) =>
    readOfferings(section('offerings') as OfferingsSection | undefined, drivers, holdSeconds);
  const driverOf = (supplier: string) => {
    const driver = drivers.get(supplier);
    if (driver === undefined) throw fail('SUPPLIER_UNAVAILABLE', { retryAfterSeconds: 30 });
    return driver;
  };
  return {
    gateway,
    database,
    log,
    timings,
    limits,
    clock,
    now: clock.now,
    books: spans.watching(openBooks(database, changes.announce, places)),
    spans,
    changes,
    drivers,
    health,
    places,
    isWorker: readRole(process.env) !== 'gateway',
    offerings: () => offeringsOf((name) => gateway.section(name)),
    offeringsOf,
    driverOf,
    requireSupplier: (supplier) => {
      driverOf(supplier);
      if (health.isDown(supplier)) throw fail('SUPPLIER_UNAVAILABLE', { retryable: true, retryAfterSeconds: 10 });
    },
  };
}

const DOWN_AFTER_FAILURES = 3;
const DOWN_FOR_MS = 30_000;

/** Records whether suppliers answer this process. A supplier that fails repeatedly gets no new instances for a while. */
class SupplierHealth {
  readonly #silent = new Map<string, { failures: number; lastAtMs: number }>();

  answered(supplier: string): void {
    this.#silent.delete(supplier);
  }

  failed(supplier: string, nowMs = performance.now()): void {
    const failures = (this.#silent.get(supplier)?.failures ?? 0) + 1;
    this.#silent.set(supplier, { failures, lastAtMs: nowMs });
  }

  isDown(supplier: string, nowMs = performance.now()): boolean {
    const silent = this.#silent.get(supplier);
    return silent !== undefined && silent.failures >= DOWN_AFTER_FAILURES && nowMs < silent.lastAtMs + DOWN_FOR_MS;
  }
}

/** The service of the endpoints that reach into a running sandbox: commands, files and ports. */
export interface InsideService extends SandboxService {
  readonly commands: Commands;
  readonly ports: PortProxy;
  /** The domain below which each port has a host of its own. undefined: ports are reached by paths. */
  readonly portDomain: string | undefined;
}

export function createInside(service: SandboxService): InsideService {
  const { log, gateway } = service;
  return {
    ...service,
    commands: new Commands(service),
    ports: new PortProxy(service, log, gateway.isStopping, gateway.egress),
    portDomain: readPortDomain(process.env),
  };
}

/** Runs the background loops of commands and ports. Returns the function that stops them. */
export function runInside({ commands, ports }: InsideService): Stop {
  const stops = [commands.run(), ports.run()];
  return async () => {
    for (const stop of stops) await stop();
  };
}
