import assert from 'node:assert/strict';
import { assertNamed } from '../support/named-tests';
import { textOf } from '../support/sources';

const lines = textOf('docs/money.md').split('\n');
const rows = lines.filter((line) => line.startsWith('|'));
const endings = rows.slice(
  2,
  rows.findIndex((row) => row.startsWith('| Redis')),
);

describe('docs/money.md', () => {
  it('shows every ending of a call by tests', () => {
    assert.equal(endings.length, 11);
    for (const row of endings) assert.match(row, /\.test\.ts`/, row);
  });

  it('names tests that exist, by their titles', () => {
    for (const line of lines) assertNamed(line);
  });
});
