// @ts-check
const { defineSupplier } = require('tollgate/supplier');
const { ExampleDriver } = require('./driver');

const supplier = defineSupplier({
  contract: 'supplier/1',
  name: 'example-supplier', // `driver: example-supplier` of a supplier in system.config.yml
  summary: 'Virtual machines of an example.',
  // The supplier's settings: its address.
  schema: {
    type: 'object',
    properties: { url: { type: 'string', minLength: 1 }, token: { type: 'string', minLength: 1 } },
    required: ['url', 'token'],
  },
  // An offering's `supplierSettings`.
  offeringSchema: { type: 'object', properties: { template: { type: 'string', default: 'base' } } },
  open: async ({ url, token }) => new ExampleDriver(url, token),
});

module.exports = { supplier };
