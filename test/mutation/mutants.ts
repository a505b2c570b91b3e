import type { LuaScript } from '../../core/lua';

/** A script with one thing wrong. */
export interface Mutant {
  readonly script: LuaScript;
  readonly line: number;
  readonly change: string;
  readonly source: string;
}

interface Rule {
  /** What it breaks, for the table. */
  readonly kind: string;
  readonly pattern: RegExp;
  readonly into: string | ((found: string) => string);
}

const swap = (one: string, other: string) => (found: string) =>
  found.includes(one) ? found.replace(one, other) : found.replace(other, one);

/** Each place a rule matches is one mutant. Statements are whole lines, joined where they go on. */
const RULES: readonly Rule[] = [
  {
    kind: 'statement removed',
    pattern:
      /^[ \t]*(local \w+ = )?redis\.call\('(HINCRBY|HSET|HDEL|DEL|ZADD|ZREM|XADD|XTRIM|PEXPIRE|SET)'[^\n]*(\n[ \t]{2,}'[^\n]*)*/gm,
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

const FIELDS: Readonly<Record<string, string>> = {
  "'available'": "'held'",
  "'held'": "'available'",
  "'spent'": "'held'",
  "'posted'": "'available'",
};

/** All of them, in the order of the script's lines. */
export function mutantsOf(script: LuaScript): readonly Mutant[] {
  const lines = script.source.split('\n');
  const first = lines.findIndex((line, index) => index > 0 && !line.startsWith('--'));
  const head = `${lines.slice(0, first).join('\n')}\n`;
  const body = lines.slice(first).join('\n');
  const found = [...RULES.flatMap((rule) => applyTo(rule, body)), ...otherWords(script, body)];
  return found
    .filter(({ to }) => head + to !== script.source)
    .map(({ at, kind, from, to }) => ({
      script,
      line: first + body.slice(0, at).split('\n').length,
      change: `${kind}: ${from.trim().replaceAll(/\s+/g, ' ').slice(0, 70)}`,
      source: head + to,
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
    // The one function all scripts have, and comments.
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

/** Each answer replaced by another one of the same script. */
function otherWords({ answers }: LuaScript, body: string): Found[] {
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
