import type { Gateway } from '../../core/gateway';
import { registerHoldSource } from '../../core/ledger/hold-sources';
import { startToldLoop } from '../../core/loop';
import { definePlugin } from '../../core/plugin';
import { readRole } from '../../core/role';
import { registerSupplier } from '../../core/supplier';
import { describeFault } from '../../core/thrown';
import { READ_CLOCK_EVERY_MS } from './database-clock';
import { createInside, type InsideService, runInside } from './inside';
import { LIMITS } from './limits';
import { checkOfferings, OFFERINGS } from './offering';
import { readSandboxHolds } from './open-holds';
import { sandboxRoutes } from './routes';
import { insideRoutes } from './routes/inside';
import { portHosts } from './routes/proxy-port';
import { createService, openSuppliers, type SupplierSettings } from './service';
import { docker } from './suppliers/docker';
import { processes } from './suppliers/process';
import { readInstallation } from './tags';
import { readTimings, TIMINGS } from './timings';
import { refuseUnisolated } from './unisolated';
import { startWorker } from './worker';

/** The services of the gateways of this process; there is one, and tests have several. */
const services = new WeakMap<Gateway, Services>();

interface Services {
  readonly service: ReturnType<typeof createService>;
  readonly inside: InsideService;
}

function servicesOf(gateway: Gateway): Services {
  const made = services.get(gateway);
  if (made === undefined) throw new Error('the routes of the sandbox plugin are made first');
  return made;
}

/** Sandboxes; contract section 8. */
export default definePlugin({
  name: 'sandbox',
  summary: 'Sandboxes: instances that run at suppliers and are billed by the second.',
  schema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      suppliers: {
        description: "Who runs sandboxes: a name, its `driver` and the driver's settings.",
        type: 'object',
        default: {},
        additionalProperties: {
          type: 'object',
          required: ['driver'],
          properties: { driver: { description: 'A registered driver.', type: 'string', minLength: 1 } },
        },
      },
      environment: {
        description:
          'Tells the instances of this installation from those of others at the same supplier; default: its database does.',
        type: 'string',
        pattern: '^[a-z0-9-]{1,40}$',
      },
      allowUnisolated: {
        description: 'Sandboxes without isolation may be offered where others reach the gateway.',
        type: 'boolean',
        default: false,
      },
      endedDays: {
        description:
          'Sandboxes that ended longer ago are forgotten with all that was written down of them; absent: never.',
        type: 'integer',
        minimum: 1,
      },
      ...TIMINGS,
      ...LIMITS,
    },
  },
  register: () => {
    for (const kind of [docker, processes]) registerSupplier(kind);
    registerHoldSource(readSandboxHolds);
  },
  sections: { offerings: { schema: OFFERINGS, check: checkOfferings } },
  routes: (settings, gateway) => {
    const service = createService(gateway, readTimings(settings), settings);
    const inside = createInside(service);
    services.set(gateway, { service, inside });
    return [...sandboxRoutes(service), ...insideRoutes(inside)];
  },
  hosts: (_settings, gateway) => portHosts(servicesOf(gateway).inside),
  start: async (settings, gateway) => {
    const { service, inside } = servicesOf(gateway);
    const opened = await openSuppliers(settings.suppliers as Readonly<Record<string, SupplierSettings>>, gateway);
    for (const [name, driver] of opened) service.drivers.set(name, driver);
    refuseUnisolated(service, settings.allowUnisolated);
    await service.changes.listen();
    await service.clock.read();
    const stopClock = startToldLoop(service.clock.read, READ_CLOCK_EVERY_MS, (error) =>
      gateway.log.warn({ error: describeFault(error) }, "the database's clock cannot be read"),
    );
    const stopInside = runInside(inside);
    const works = readRole(process.env) !== 'gateway';
    const environment = settings.environment ?? (await readInstallation(gateway.database));
    const stopWorker = works ? startWorker(service, { ...settings, environment }) : async () => {};
    return async () => {
      await stopInside();
      await stopWorker();
      await stopClock();
      await service.changes.close();
      for (const driver of opened.values()) await driver.close();
    };
  },
});
