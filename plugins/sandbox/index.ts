import { registerHoldSource } from '../../core/ledger/hold-sources';
import { definePlugin } from '../../core/plugin';
import { StartFailure } from '../../core/start-failure';
import { checkOfferings, OFFERINGS } from './offering';
import { readSandboxHolds } from './open-holds';
import { sandboxRoutes } from './routes';
import { createService, openSuppliers, type SupplierSettings } from './service';
import { readTimings, TIMINGS } from './timings';
import { startWorker } from './worker';

/** The services of the gateways of this process; there is one, and tests have several. */
const services = new WeakMap<object, ReturnType<typeof createService>>();

/** What a process does: serve, keep sandboxes true, or both. */
const ROLES = { all: { works: true }, gateway: { works: false }, worker: { works: true } } as const;

function readRole(): keyof typeof ROLES {
  const role = process.env['ROLE'] ?? 'all';
  if (Object.hasOwn(ROLES, role)) return role as keyof typeof ROLES;
  throw new StartFailure(`ROLE is "${role}", but it must be one of ${Object.keys(ROLES).join(', ')}.`);
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
          properties: { driver: { type: 'string', minLength: 1 } },
        },
      },
      environment: {
        description: 'Tells the instances of this installation from those of others at the same supplier.',
        type: 'string',
        pattern: '^[a-z0-9-]{1,40}$',
        default: 'tollgate',
      },
      ...TIMINGS,
    },
  },
  register: () => void registerHoldSource(readSandboxHolds),
  sections: { offerings: { schema: OFFERINGS, check: checkOfferings } },
  routes: (settings, gateway) => {
    const service = createService(gateway, readTimings(settings));
    services.set(gateway, service);
    return sandboxRoutes(service);
  },
  start: async (settings, gateway) => {
    const service = services.get(gateway);
    if (service === undefined) throw new Error('the routes of the sandbox plugin are made before it starts');
    const opened = await openSuppliers(settings.suppliers as Readonly<Record<string, SupplierSettings>>, gateway.log);
    for (const [name, driver] of opened) service.drivers.set(name, driver);
    await service.changes.listen();
    const stopWorker = ROLES[readRole()].works ? startWorker(service, settings.environment) : async () => {};
    return async () => {
      await stopWorker();
      await service.changes.close();
      for (const driver of opened.values()) await driver.close();
    };
  },
});
