import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { includeLibraries, type LuaScript } from '../../core/storage/lua';

/** A Lua file as it is written, and a function that makes each script which includes it from another version of the file. */
export interface Subject {
  readonly name: string;
  readonly text: string;
  readonly answers: readonly string[];
  with(text: string): ReadonlyMap<LuaScript, string>;
}

/** A file with one mistake. */
export interface Mutant {
  readonly name: string;
  readonly line: number;
  readonly change: string;
  readonly sources: ReadonlyMap<LuaScript, string>;
}

const INCLUDE = /^-- include ([a-z-]+)$/gm;

/** Lists the files of a folder that these scripts consist of: their own, and the libraries that they include. */
export function subjectsIn(folder: string, scripts: readonly LuaScript[]): readonly Subject[] {
  const own = (name: string) => readFileSync(join(folder, `${name}.lua`), 'utf8');
  const libraries = new Map<string, Map<LuaScript, (library: string) => string>>();
  const subjects = scripts.map((script): Subject => {
    const text = own(script.name);
    for (const [, library = ''] of text.matchAll(INCLUDE)) {
      const read = (name: string, changed: string) => (name === library ? `#!lua library\n${changed}` : own(name));
      const users = libraries.get(library) ?? new Map();
      const into = (changed: string) => includeLibraries(text, (name) => read(name, changed));
      libraries.set(library, users.set(script, into));
    }
    const put = (changed: string) => includeLibraries(changed, own);
    return { name: script.name, text, answers: script.answers, with: (changed) => new Map([[script, put(changed)]]) };
  });
  return [...subjects, ...[...libraries].map(([name, users]) => libraryOf(name, own(name), users))];
}

function libraryOf(name: string, text: string, users: ReadonlyMap<LuaScript, (library: string) => string>): Subject {
  const body = text.slice(text.indexOf('\n') + 1);
  const put = (changed: string) => new Map([...users].map(([script, into]) => [script, into(changed)]));
  return { name, text: body, answers: [], with: put };
}

interface Rule {
  /** The kind of mistake, for the table. */
  readonly kind: string;
  readonly pattern: RegExp;
  readonly into: string | ((found: string) => string);
}

const swap = (one: string, other: string) => (found: string) =>
  found.includes(one) ? found.replace(one, other) : found.replace(other, one);

/** Each match of a rule is one mutant. Statements are whole lines, joined if they continue. */
const RULES: readonly Rule[] = [
  {
    kind: 'statement removed',
    pattern:
      /^[ \t]*(local \w+ = )?redis\.call\('(HINCRBY|HSET|HDEL|DEL|ZADD|ZREM|XADD|XTRIM|PEXPIRE|RESTORE|SET|INCR)'[^\n]*(\n[ \t]{2,}'[^\n]*)*/gm,
    into: (found) => (/^[ \t]*local/.test(found) ? found.replace(/=.*/s, "= '0'") : ''),
  },
  { kind: 'check removed', pattern: /^[ \t]*if [^\n]* then return [^\n]* end$/gm, into: '' },
  { kind: 'boundary', pattern: / (>|<) /g, into: (found) => `${found.trimEnd()}= ` },
  { kind: 'comparison', pattern: / (==|~=) /g, into: swap('==', '~=') },
  { kind: 'direction', pattern: / (>|<) /g, into: swap('>', '<') },
  { kind: 'sign', pattern: / [+-] (?=[a-z(#])/g, into: swap('+', '-') },
  { kind: 'one more', pattern: /'(0|1)'(?=[,)])/g, into: (found) => (found === "'0'" ? "'1'" : "'2'") },
  { kind: 'one more', pattern: /, (0|1)\)/g, into: swap('0', '1') },
  { kind: 'logic', pattern: / (and|or) /g, into: swap('and', 'or') },
  { kind: 'minimum', pattern: /math\.(min|max)/g, into: swap('min', 'max') },
  { kind: 'field', pattern: /'(available|held|spent|posted)'/g, into: (found) => FIELDS[found] ?? found },
  { kind: 'argument', pattern: /ARGV\[2\](?! \.\.)/g, into: 'ARGV[1]' },
];

/** Rules for short scripts, in which the other rules find little. */
const RULES_FOR_SHORT_ONES: readonly Rule[] = [
  { kind: 'another key', pattern: /(?<!#)KEYS\[\w+\]/g, into: (found) => `${found} .. 'x'` },
  { kind: 'another value', pattern: /ARGV\[\d\]/g, into: (found) => `${found} .. '0'` },
  { kind: 'no value', pattern: /ARGV\[\d\]/g, into: "''" },
  // Leaves out fractions of a millisecond, because no test can observe them.
  { kind: 'number', pattern: /(?<=[^/] )\d+(?=[ ,)])/g, into: (found) => String(Number(found) + 1) },
  { kind: 'fewer', pattern: /#KEYS/g, into: '#KEYS - 1' },
  {
    kind: 'command',
    pattern: /'(SET|INCR|PEXPIRE|ZRANGEBYSCORE|MINID|-inf)'/g,
    into: (found) => COMMANDS[found] ?? found,
  },
];

const SHORT = 12;

const COMMANDS: Readonly<Record<string, string>> = {
  "'SET'": "'APPEND'",
  "'INCR'": "'GET'",
  "'PEXPIRE'": "'EXPIRE'",
  "'ZRANGEBYSCORE'": "'ZREVRANGEBYSCORE'",
  "'MINID'": "'MAXLEN'",
  "'-inf'": "'+inf'",
};

const FIELDS: Readonly<Record<string, string>> = {
  "'available'": "'held'",
  "'held'": "'available'",
  "'spent'": "'held'",
  "'posted'": "'available'",
};

/** Returns all mutants of a file, in the order of its lines. */
export function mutantsOf(subject: Subject): readonly Mutant[] {
  const lines = subject.text.split('\n');
  const first = lines.findIndex((line, index) => index > 0 && !line.startsWith('--'));
  const head = `${lines.slice(0, first).join('\n')}\n`;
  const body = lines.slice(first).join('\n');
  const found = [...RULES.flatMap((rule) => applyTo(rule, body)), ...otherWords(subject.answers, body)];
  if (found.length < SHORT) found.push(...RULES_FOR_SHORT_ONES.flatMap((rule) => applyTo(rule, body)));
  return found
    .filter(({ to }) => to !== body)
    .map(({ at, kind, from, to }) => ({
      name: subject.name,
      line: first + body.slice(0, at).split('\n').length,
      change: `${kind}: ${from.trim().replaceAll(/\s+/g, ' ').slice(0, 90)}`,
      sources: subject.with(head + to),
    }))
    .sort((one, other) => one.line - other.line);
}

interface Found {
  readonly at: number;
  readonly kind: string;
  readonly from: string;
  readonly to: string;
}

function applyTo({ kind, pattern, into }: Rule, body: string): Found[] {
  return [...body.matchAll(pattern)].flatMap((match) => {
    const [from] = match;
    // Skips the function that all scripts share, and comments.
    const line = lineAt(body, match.index);
    if (/^\s*--/.test(line) || line.startsWith('local function integer')) return [];
    const replaced = typeof into === 'string' ? into : into(from);
    const to = body.slice(0, match.index) + replaced + body.slice(match.index + from.length);
    const indent = from.length - from.trimStart().length;
    return [{ at: match.index + (kind.endsWith('removed') ? indent : 0), kind, from: context(line, from), to }];
  });
}

function context(line: string, from: string): string {
  return from.length > 20 ? from : `${from.trim()} in ${line.trim()}`;
}

/** Replaces each answer by another one of the same script. */
function otherWords(answers: readonly string[], body: string): Found[] {
  return [...body.matchAll(/return (\{ )?'([a-z_]+)'/g)].flatMap((match) => {
    const [from, brace = '', word = ''] = match;
    const other = answers.find((each) => each !== word);
    if (other === undefined) return [];
    const to = `${body.slice(0, match.index)}return ${brace}'${other}'${body.slice(match.index + from.length)}`;
    return [{ at: match.index, kind: 'word', from: `${word} becomes ${other}`, to }];
  });
}

function lineAt(text: string, at: number): string {
  const start = text.lastIndexOf('\n', at - 1) + 1;
  const end = text.indexOf('\n', at);
  return text.slice(start, end < 0 ? undefined : end);
}
