import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { textOf } from './sources';

/** Matches a test that a document names: its file, and titles in “ ”, in which … stands for omitted text. */
const NAMED = /`([^`]*\.test\.ts)`|“([^”]*)”/g;

function titlesIn(file: string): readonly string[] {
  const source = textOf(file).replaceAll("\\'", "'");
  return [...source.matchAll(/\bit\(\s*(['"`])(.*?)\1,\s*(?:async|function|\()/gs)].map(([, , title = '']) => title);
}

/** Returns whether a title contains all parts of a quotation in order. */
function isTitle(title: string, quoted: string): boolean {
  let at = 0;
  for (const part of quoted.split('…').map((each) => each.trim())) {
    at = title.indexOf(part, at);
    if (at < 0) return false;
    at += part.length;
  }
  return true;
}

/**
 * Fails if a line of a document names a test that does not exist. Titles follow their file. A file without a folder is in the folder of the previous
 * one.
 */
export function assertNamed(line: string): void {
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
