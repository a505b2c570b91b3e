import { defineSupplier } from '../supplier';
import { DockerDriver } from './driver';
import { OFFERING_SCHEMA, SUPPLIER_SCHEMA } from './settings';

export const docker = defineSupplier({
  contract: 'supplier/1',
  name: 'docker',
  summary: 'Containers of a Docker Engine on this machine.',
  schema: SUPPLIER_SCHEMA,
  offeringSchema: OFFERING_SCHEMA,
  open: async (settings, { log }) => {
    const driver = new DockerDriver(settings, log);
    await driver.checkEngine();
    return driver;
  },
});
