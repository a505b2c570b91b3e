// @ts-check
// Sandboxes in the virtual machines of a supplier with an HTTP API.
const { manifest } = require('tollgate/manifest');
const { definePlugin } = require('tollgate/plugin');
const { registerSupplier } = require('tollgate/supplier');
const { supplier } = require('./supplier');

const plugin = definePlugin({
  contract: 'plugin/1',
  name: 'example-supplier',
  summary: 'Sandboxes at an example.',
  schema: { type: 'object', properties: {} },
  register: () => registerSupplier(supplier),
});

module.exports = manifest({ plugins: [plugin] });
