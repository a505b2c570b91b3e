import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { runTollgate } from '../support/command-line';

function script(shell: string) {
  return runTollgate(['completion', shell]);
}

/** Returns what bash offers after these words, the last of which is being typed. */
async function bashOffers(...words: string[]): Promise<string[]> {
  const { out } = await script('bash');
  const typed = ['tollgate', ...words].map((word) => `'${word}'`).join(' ');
  const ask = `COMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _tollgate; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', `${out}\n${ask}`]);
  return stdout.split('\n').filter((line) => line !== '');
}

describe('the completion script of the shell', () => {
  it('offers nouns first, verbs after a noun, and options after a verb', async () => {
    const nouns = await bashOffers('');
    for (const noun of ['accounts', 'keys', 'usage', 'balance', 'completion', '--json'])
      assert.ok(nouns.includes(noun));
    assert.deepEqual(await bashOffers('acc'), ['accounts']);
    const verbs = await bashOffers('accounts', '');
    for (const verb of ['create', 'list', 'freeze']) assert.ok(verbs.includes(verb));
    assert.ok(!verbs.includes('keys'));
    assert.deepEqual(await bashOffers('keys', 'create', 'some-account', 'some name', '--li'), ['--limit']);
    assert.deepEqual(await bashOffers('completion', 'z'), ['zsh']);
    assert.deepEqual(await bashOffers('config', 'schema', 'sy'), ['system']);
  });

  it("offers a verb's options even after other options or after arguments", async () => {
    assert.deepEqual(await bashOffers('--json', 'usage', 'list', '--status', '200', '--up'), ['--upstream']);
    assert.deepEqual(await bashOffers('nonsense', 'ke'), ['keys']);
  });

  it('registers itself for the program `tollgate`', async () => {
    const { out } = await script('bash');
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', `${out}\ncomplete -p tollgate`]);
    assert.equal(stdout.trim(), 'complete -o default -F _tollgate tollgate');
  });

  it('offers zsh the same words with their descriptions', async () => {
    const { out } = await script('zsh');
    assert.ok(out.startsWith('#compdef tollgate\n'));
    for (const verb of await bashOffers('accounts', '')) assert.match(out, new RegExp(`\\('accounts'\\) .*'${verb}:`));
    assert.match(out, /'freeze:freeze an account\\: refuse all its further calls'/);
  });

  it('is refused with exit status 2 for an unknown shell', async () => {
    assert.equal((await script('fish')).status, 2);
  });
});
