import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A Lua script for Redis with one operation. The comment block at the head of its file is its contract. It has the purpose, every
 * KEYS[n] and ARGV[n], and under `answers` every word that the script can return. The loader rejects a file whose body differs
 * from its header.
 */
export interface LuaScript {
  readonly name: string;
  readonly source: string;
  readonly answers: readonly string[];
}

/** The error for a Lua file whose header is invalid, or whose body disagrees with its header. */
export class LuaHeaderError extends Error {
  override readonly name = 'LuaHeaderError';
}

/**
 * Loads `<folder>/<name>.lua`. The folder belongs to the calling module, because the build copies the files next to the compiled
 * code. A line `-- include <other>` inserts the functions of `<folder>/<other>.lua`, a library (`#!lua library`) without an
 * operation.
 */
export function loadScript(folder: string, name: string): LuaScript {
  const read = (file: string) => readFileSync(join(folder, `${file}.lua`), 'utf8');
  return parseScript(name, read(name), read);
}

const INCLUDE = /^-- include ([a-z-]+)$/gm;
const LIBRARY = /^#!lua library\n/;

/**
 * Replaces each include line of a Lua script by the functions of the library that it names. Removes the library's comments, because Redis
 * keeps the whole text.
 */
export function includeLibraries(source: string, read: (name: string) => string): string {
  return source.replace(INCLUDE, (_, library: string) => {
    const text = read(library);
    if (!LIBRARY.test(text))
      throw new LuaHeaderError(`${library}.lua is included, so it must begin with #!lua library`);
    return withoutComments(text.replace(LIBRARY, '').split('\n')).replace(/\n{2,}/g, '\n');
  });
}

export function parseScript(name: string, own: string, read: (name: string) => string = () => ''): LuaScript {
  const { header, body } = splitHeader(name, own);
  const source = includeLibraries(own, read);
  for (const table of ['KEYS', 'ARGV'] as const) {
    compare(name, declaredIndexes(header, table), usedIndexes(body, table));
  }
  const answers = declaredAnswers(header);
  compare(name, answers, returnedWords(name, body));
  return { name, source, answers: [...answers] };
}

function splitHeader(name: string, source: string): { header: string[]; body: string } {
  const lines = source.split('\n');
  if (!lines[0]?.startsWith('#!lua') || LIBRARY.test(source))
    throw new LuaHeaderError(`${name}.lua must begin with #!lua and its flags`);
  const end = lines.findIndex((line, index) => index > 0 && !line.startsWith('--'));
  const header = lines.slice(1, end).map((line) => line.slice(2).replace(/^ /, ''));
  if ((header[0] ?? '').trim() === '')
    throw new LuaHeaderError(`${name}.lua must have a comment below its first line that says what the script does`);
  return { header, body: withoutComments(lines.slice(end)) };
}

function withoutComments(lines: readonly string[]): string {
  return lines.map((line) => line.replace(/--.*$/, '')).join('\n');
}

function declaredIndexes(header: readonly string[], table: 'KEYS' | 'ARGV'): Set<string> {
  const declaration = new RegExp(`^(${table}\\[\\d+(?:\\.\\.)?\\])\\s+\\S`);
  return new Set(header.flatMap((line) => declaration.exec(line)?.[1] ?? []));
}

/**
 * Returns the `KEYS` or `ARGV` indexes that a script's body uses. An index that is not a number belongs to a list, which the header
 * declares as `KEYS[2..]`.
 */
function usedIndexes(body: string, table: 'KEYS' | 'ARGV'): Set<string> {
  const used = new Set<string>();
  for (const [, index = ''] of body.matchAll(new RegExp(`\\b${table}\\[([^\\]]+)\\]`, 'g'))) {
    if (/^\d+$/.test(index)) used.add(`${table}[${index}]`);
    else used.add(`${table}[${firstOfLoop(body, index)}..]`);
  }
  return used;
}

function firstOfLoop(body: string, variable: string): string {
  return new RegExp(`\\bfor ${variable} = (\\d+),`).exec(body)?.[1] ?? variable;
}

/**
 * Returns the result words that a Lua script's header declares: the first word of each indented line under `answers`. The values that
 * follow a word are ignored.
 */
function declaredAnswers(header: readonly string[]): Set<string> {
  const start = header.indexOf('answers');
  if (start === -1) return new Set();
  return new Set(header.slice(start + 1).flatMap((line) => /^ {2}([a-z_]+)\b/.exec(line)?.[1] ?? []));
}

/**
 * Returns the result words of a Lua script's body. Every `return` outside a one-line function must name its word, so that a text search for
 * the word finds it.
 */
function returnedWords(name: string, body: string): Set<string> {
  const words = new Set<string>();
  for (const line of body.replace(/^local function .* end$/gm, '').split('\n')) {
    for (const [, answer = ''] of line.matchAll(/\breturn\b\s*(.*)$/g)) {
      const word = /^(?:\{\s*)?'([a-z_]+)'/.exec(answer)?.[1];
      if (word === undefined)
        throw new LuaHeaderError(`${name}.lua: a \`return\` must name its result as a quoted word: ${line.trim()}`);
      words.add(word);
    }
  }
  return words;
}

function compare(name: string, declared: ReadonlySet<string>, used: ReadonlySet<string>): void {
  for (const each of used) {
    if (!declared.has(each)) throw new LuaHeaderError(`${name}.lua uses ${each}, which its header does not declare`);
  }
  for (const each of declared) {
    if (!used.has(each)) throw new LuaHeaderError(`${name}.lua declares ${each}, which its body does not use`);
  }
}
