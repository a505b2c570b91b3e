import assert from 'node:assert/strict';
import { schemaDocument } from '../support/schema-text';
import { textOf } from '../support/sources';

/** The time to create an embedded database, which takes seconds of one core. */
const MAKING_PGLITE_MS = 120_000;

describe('docs/schema.sql', function () {
  this.timeout(MAKING_PGLITE_MS);
  let built = '';
  before(async () => {
    built = await schemaDocument();
  });

  it('equals the schema that the migrations build', () => {
    const hint = 'docs/schema.sql is not what the migrations build: run "npm run schema".';
    assert.ok(textOf('docs/schema.sql') === built, hint);
  });

  it('describes every table', () => {
    const unnamed = [...built.matchAll(/^(.*)\nCREATE TABLE (\w+)/gm)].filter(
      ([, line = '']) => !line.startsWith('-- '),
    );
    assert.deepEqual(
      unnamed.map(([, , table]) => `${table} has no comment: add it in a migration`),
      [],
    );
  });
});
