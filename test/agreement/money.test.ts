import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { textOf } from '../support/sources';

/** A test in docs/money.md: its file, and titles in “ ”, in which … stands for what is left out. */
const NAMED = /`([^`]*\.test\.ts)`|“([^”]*)”/g;

const lines = textOf('docs/money.md').split('\n');
const rows = lines.filter((line) => line.startsWith('|'));
const endings = rows.slice(
  2,
  rows.findIndex((row) => row.startsWith('| Redis')),
);

function titlesIn(file: string): readonly string[] {
  const source = textOf(file).replaceAll("\\'", "'");
  return [...source.matchAll(/\bit\(\s*(['"`])(.*?)\1,\s*(?:async|function|\()/gs)].map(([, , title = '']) => title);
}

/** Part by part, in order. */
function isTitle(title: string, quoted: string): boolean {
  let at = 0;
  for (const part of quoted.split('…').map((each) => each.trim())) {
    at = title.indexOf(part, at);
    if (at < 0) return false;
    at += part.length;
  }
  return true;
}

/** The titles of a file stand behind it; one without a folder is in that of the one before. */
function assertNamed(line: string): void {
  let file = '';
  let titles: readonly string[] = [];
  for (const [, path, quoted] of line.matchAll(NAMED)) {
    if (path !== undefined) {
      file = path.includes('/') ? path : join(dirname(file), path);
      titles = titlesIn(file);
    } else if (file !== '' && quoted !== undefined) {
      assert.ok(
        titles.some((title) => isTitle(title, quoted)),
        `no test “${quoted}” in ${file}`,
      );
    }
  }
}

describe('docs/money.md', () => {
  it('shows every ending of a call by tests', () => {
    assert.equal(endings.length, 11);
    for (const row of endings) assert.match(row, /\.test\.ts`/, row);
  });

  it('names tests that exist, by their titles', () => {
    for (const line of lines) assertNamed(line);
  });
});
