import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assertNamed } from '../support/named-tests';
import { PROJECT, textOf } from '../support/sources';

const DOCUMENT = textOf('docs/security.md');

/** Returns the cells of each row in the table under a heading. */
function rowsUnder(heading: string): string[][] {
  const section = DOCUMENT.slice(DOCUMENT.indexOf(`${heading}\n`)).split('\n#')[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) => row.split('|').map((cell) => cell.trim()));
}

function licenceOf(name: string): string {
  const text = readFileSync(join(PROJECT, 'node_modules', name, 'package.json'), 'utf8');
  const { license, licenses } = JSON.parse(text) as { license?: string; licenses?: readonly { type: string }[] };
  return license ?? licenses?.[0]?.type ?? '';
}

describe('docs/security.md', () => {
  it('names only existing tests, by their titles', () => {
    for (const line of DOCUMENT.split('\n')) assertNamed(line);
  });

  it('lists each production dependency with its license', () => {
    const { dependencies } = JSON.parse(textOf('package.json')) as { dependencies: Record<string, string> };
    const listed = rowsUnder('### Ours').map(([, name = '', licence]) => [name.replaceAll('`', ''), licence]);
    assert.deepEqual(
      listed,
      Object.keys(dependencies).map((name) => [name, licenceOf(name)]),
    );
  });
});
