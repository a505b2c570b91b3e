import { definePlugin } from '../../core/plugin';
import { checkOfferings, OFFERINGS } from './offering';
import { sandboxRoutes } from './routes';
import { createService, openSuppliers, type SandboxService, type SupplierSettings } from './service';
import { readTimings, TIMINGS } from './timings';

/** The services of the gateways of this process; there is one, and tests have several. */
const services = new WeakMap<object, ReturnType<typeof createService>>();

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
        description: 'Tells the instances of this installation from those of others at the same supplier.',
        type: 'string',
        pattern: '^[a-z0-9-]{1,40}$',
        default: 'tollgate',
      },
      ...TIMINGS,
    },
  },
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
    return async () => {
      for (const driver of opened.values()) await driver.close();
    };
  },
});

export type { SandboxService };
