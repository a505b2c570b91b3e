const { describe, it } = require('node:test');
const { join } = require('node:path');
const { readRecordings, upstreamConformance } = require('tollgate/conformance');
const [adapter] = require('..').tollgate.adapters;

const subject = {
  adapter,
  settings: {}, // valid `adapterSettings`
  protocol: 'chat',
  modelIn: 'path',
  ...readRecordings(join(__dirname, '../recordings')),
};

describe('the adapter', () => {
  for (const { name, run } of upstreamConformance(subject)) it(name, run);
});
