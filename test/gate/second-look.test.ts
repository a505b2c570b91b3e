import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Round, runRound } from '../flaky/round';
import { type Failure, failuresOf, lookAgain, mayLookAgain } from './second-look';

const PASSES: Round = { passed: 2, failures: [], seconds: 1 };
const FAILS: Round = { passed: 1, failures: [{ title: 'it', message: 'no' }], seconds: 1 };

const failure = (file: string | undefined): Failure => ({ file, title: 'it' });

/** Returns a run of single files with these results, one after the other, and the files it was asked for. */
function runs(...results: readonly Round[]) {
  const files: string[] = [];
  const runAlone = async (file: string) => results[files.push(file) - 1] ?? PASSES;
  return { files, runAlone };
}

describe('the second run of a failed test file', () => {
  it('marks a file as flaky if it passes twice when run alone', async () => {
    const { files, runAlone } = runs(PASSES, PASSES);
    const { flaky, failed } = await lookAgain([failure('test/core/base/loop.test.ts')], runAlone);
    expect({ flaky: flaky.length, failed: failed.length }).to.deep.equal({ flaky: 1, failed: 0 });
    expect(files).to.deep.equal(['test/core/base/loop.test.ts', 'test/core/base/loop.test.ts']);
  });

  for (const [when, results] of [
    ['fails the first time alone', [FAILS]],
    ['fails the second time alone', [PASSES, FAILS]],
    ['has no test that runs', [{ ...PASSES, passed: 0 }]],
  ] as const)
    it(`keeps the failure if the file ${when}`, async () => {
      const { runAlone } = runs(...results);
      const { flaky, failed } = await lookAgain([failure('test/core/base/loop.test.ts')], runAlone);
      expect({ flaky: flaky.length, failed: failed.length }).to.deep.equal({ flaky: 0, failed: 1 });
    });

  it('never reruns a file about money, the ledger, revocation, tenants, egress, limits or sandboxes', async () => {
    const files = [
      'test/gateway/money.test.ts',
      'test/gateway/vendor-rows.test.ts',
      'test/gateway/key-access.real.test.ts',
      'test/gateway/stored-answers.test.ts',
      'test/gateway/sandbox-lifecycle.test.ts',
      'test/core/wire/egress.test.ts',
      'test/core/http/connection-limits.test.ts',
      'test/store/ledger/spool.test.ts',
      'test/plugins/sandbox/worker/pay.test.ts',
      'test/policies/reserve-settle/hold.test.ts',
      'test/long/revocations.test.ts',
    ];
    expect(files.filter(mayLookAgain)).to.deep.equal([]);
    expect(mayLookAgain('test/gateway/translation.test.ts')).to.equal(true);
    const { files: asked, runAlone } = runs();
    const { failed } = await lookAgain([failure('test/gateway/money.test.ts')], runAlone);
    expect(failed).to.have.length(1);
    expect(asked).to.deep.equal([]);
  });

  it("keeps all failures if mocha's report does not name the file, or if more than three files failed", async () => {
    const { files, runAlone } = runs();
    expect((await lookAgain([failure(undefined)], runAlone)).failed).to.have.length(1);
    const four = ['a', 'b', 'c', 'd'].map((name) => failure(`test/core/${name}.test.ts`));
    expect((await lookAgain(four, runAlone)).failed).to.have.length(4);
    expect(files).to.deep.equal([]);
  });

  it("reads from mocha's report which hooks and tests failed, with their files", async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-second-look-'));
    try {
      const once = join(folder, 'once');
      const file = join(folder, 'once.test.ts');
      const isThere = `require('node:fs').existsSync('${once}')`;
      const note = `require('node:fs').writeFileSync('${once}', '')`;
      await writeFile(
        file,
        `describe('a file', () => { before(() => { if (!${isThere}) { ${note}; throw new Error('first'); } }); it('runs', () => {}); });`,
      );
      const first = await runRound([file], undefined);
      expect(first.failures.map(({ title }) => title)).to.deep.equal(['a file "before all" hook for "runs"']);
      const report = JSON.stringify({ failures: [{ file, fullTitle: first.failures[0]?.title }] });
      const looked = await lookAgain(failuresOf(report, folder), (name) => runRound([join(folder, name)], undefined));
      expect(looked).to.deep.equal({
        flaky: [{ file: 'once.test.ts', title: 'a file "before all" hook for "runs"' }],
        failed: [],
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
