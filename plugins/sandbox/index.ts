import { onFirstFailure, startLoop } from '../../core/base/loop';
import { safeErrorFields } from '../../core/base/safe-error';
import { flag, integer, map, text } from '../../core/base/setting-schemas';
import { definePlugin } from '../../core/gateway/plugin';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { registerHoldSource } from '../../core/ledger/recovery';
import { InstanceService } from './instance';
import { readTimings, SANDBOX_LIMITS, TIMINGS } from './lifecycle/settings';
import { checkOfferings, OFFERINGS } from './offerings/offering';
import { adminRoutes } from './routes/admin';
import { commandRoutes } from './routes/commands';
import { fileRoutes } from './routes/files';
import { listRoutes } from './routes/lists';
import { portHosts, portRoutes } from './routes/ports';
import { oneSandboxRoutes } from './routes/sandboxes';
import { openSuppliers, type SupplierSettings } from './service';
import { readSandboxHolds } from './store/audit';
import { READ_CLOCK_AT_REST_EVERY_MS, READ_CLOCK_EVERY_MS } from './store/database-clock';
import { docker } from './suppliers/docker/driver';
import { processes } from './suppliers/process';
import { registerSupplier } from './suppliers/supplier';
import { readInstallation } from './suppliers/tags';
import { refuseUnisolated } from './unisolated';
import { startWorker } from './worker/worker';

/** The service of each gateway in this process. Tests run several gateways in one process. */
const services = new WeakMap<PluginGateway, InstanceService>();

function serviceOf(gateway: PluginGateway): InstanceService {
  const made = services.get(gateway);
  if (made === undefined) throw new Error('the sandbox plugin must create its routes before it starts');
  return made;
}

/** The sandbox plugin; docs/contract.md, section 8. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'sandbox',
  summary: 'Sandboxes: instances that run at suppliers and are billed by the second.',
  schema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      suppliers: map(
        'The suppliers that run sandboxes, by name: the `driver` and its settings.',
        {
          type: 'object',
          required: ['driver'],
          properties: { driver: text('A registered driver.', { minLength: 1 }) },
        },
        { default: {} },
      ),
      environment: text(
        'Marks the instances of this installation at a shared supplier; default: an id from its database.',
        { pattern: '^[a-z0-9-]{1,40}$' },
      ),
      allowUnisolated: flag('Allows sandboxes without isolation although other machines can reach the gateway.', {
        default: false,
      }),
      endedDays: integer('Sandboxes that ended longer ago are deleted with all their records. Default: never.', {
        minimum: 1,
      }),
      ...TIMINGS,
      ...SANDBOX_LIMITS,
    },
  },
  register: () => {
    for (const kind of [docker, processes]) registerSupplier(kind);
    registerHoldSource(readSandboxHolds);
  },
  sections: { offerings: { schema: OFFERINGS, check: checkOfferings } },
  routes: (settings, gateway) => {
    const service = new InstanceService(gateway, readTimings(settings), settings);
    services.set(gateway, service);
    const all = [listRoutes, oneSandboxRoutes, commandRoutes, fileRoutes, portRoutes, adminRoutes];
    return all.flatMap((routes) => routes(service));
  },
  hosts: (_settings, gateway) => portHosts(serviceOf(gateway)),
  start: async (settings, gateway) => {
    const service = serviceOf(gateway);
    const opened = await openSuppliers(settings.suppliers as Readonly<Record<string, SupplierSettings>>, gateway);
    for (const [name, driver] of opened) service.drivers.set(name, driver);
    refuseUnisolated(service, settings.allowUnisolated);
    await service.changes.listen();
    await service.clock.read();
    const clock = startLoop(service.clock.read, {
      everyMs: READ_CLOCK_EVERY_MS,
      atRestMs: READ_CLOCK_AT_REST_EVERY_MS,
      whenFailed: onFirstFailure((error) =>
        gateway.log.warn(
          { error: safeErrorFields(error) },
          'the clock of the database cannot be read; the read is retried',
        ),
      ),
    });
    const loops = [service.commands.run(), service.ports.run()];
    const environment = settings.environment ?? (await readInstallation(gateway.database));
    if (service.isWorker) await service.places.begin();
    const stopWorker = service.isWorker ? startWorker(service, { ...settings, environment }) : async () => {};
    return async () => {
      for (const stop of loops) await stop();
      await stopWorker();
      await clock.stop();
      await service.changes.close();
      for (const driver of opened.values()) await driver.close();
    };
  },
});
