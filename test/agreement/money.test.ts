import assert from 'node:assert/strict';
import { assertNamed } from '../support/named-tests';
import { textOf } from '../support/sources';

const lines = textOf('docs/money.md').split('\n');
const first = lines.findIndex((line) => line.startsWith('| ending'));
const endings = lines.slice(first + 2, lines.indexOf('', first));

describe('docs/money.md', () => {
  it('names tests for every way in which a call can end', () => {
    assert.equal(endings.length, 19);
    for (const row of endings) assert.match(row, /\.test\.ts`/, row);
  });

  it('names only existing tests, by their titles', () => {
    for (const line of lines) assertNamed(line);
  });
});
