import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_SCRIPTS } from '../../core/ledger/redis/redis-ledger';
import { LuaHeaderError, parseScript } from '../../core/storage/lua';

const FOLDER = join(__dirname, '../../core/ledger/redis');

const GOOD = [
  '#!lua',
  '-- Does something.',
  '--',
  '-- KEYS[1] {sNNN}:meta',
  '-- ARGV[1] rid',
  '--',
  '-- answers',
  '--   done, rid   when it was done',
  '--   not_ready',
  '',
  "if redis.call('EXISTS', KEYS[1]) == 0 then return 'not_ready' end",
  "return { 'done', ARGV[1] }",
].join('\n');

describe('the header of a Lua script', () => {
  it("agrees with the script's body in every script of the ledger", () => {
    const files = readdirSync(FOLDER).filter((file) => file.endsWith('.lua'));
    const isLibrary = (file: string) => readFileSync(join(FOLDER, file), 'utf8').startsWith('#!lua library\n');
    const scripts = files.filter((file) => !isLibrary(file));
    assert.deepEqual(LEDGER_SCRIPTS.map(({ name }) => `${name}.lua`).sort(), scripts.sort());
    for (const script of LEDGER_SCRIPTS) assert.notEqual(script.answers.length, 0, script.name);
  });

  it("is accepted if it agrees with the script's body", () => {
    assert.deepEqual(parseScript('good', GOOD).answers, ['done', 'not_ready']);
  });

  for (const [what, source, message] of [
    ['a key that is not declared', GOOD.replace("'EXISTS', KEYS[1]", "'EXISTS', KEYS[2]"), 'uses KEYS[2]'],
    ['a declared key that is not used', GOOD.replace("'EXISTS', KEYS[1]", "'EXISTS', 'meta'"), 'declares KEYS[1]'],
    ['an argument that is not declared', GOOD.replace('-- ARGV[1] rid', '--'), 'uses ARGV[1]'],
    ['an answer that is not declared', GOOD.replace("'done'", "'finished'"), 'uses finished'],
    ['a declared answer that is not given', GOOD.replace("'not_ready' end", "'done' end"), 'declares not_ready'],
    ['a return without a quoted word', GOOD.replace("return { 'done', ARGV[1] }", 'return ARGV[1]'), 'quoted word'],
    ['no purpose', GOOD.replace('-- Does something.', '--'), 'says what the script does'],
    ['no shebang', GOOD.replace('#!lua', '-- lua'), 'must begin with #!lua'],
  ] as const) {
    it(`prevents the script from loading if the script has ${what}`, () => {
      assert.throws(
        () => parseScript('bad', source),
        (error) => error instanceof LuaHeaderError && error.message.includes(message),
      );
    });
  }
});
