/**
 * `npm run mutation`: breaks each script of the ledger on purpose, one thing at a time, and shows that the tests fail. Uses one real Redis. Runs the
 * tests of the contract first, because they catch most mutants, and then all other tests of the scripts. Exit status 1 when a mutant survives.
 */
import { join } from 'node:path';
import { Command } from 'commander';
import { Redis } from 'ioredis';
import Mocha from 'mocha';
import { LEDGER_SCRIPTS } from '../../core/ledger/redis/redis-ledger';
import type { LuaScript } from '../../core/storage/lua';
import { emptyRedis, mochaGlobalSetup, mochaGlobalTeardown } from '../support/shared';
import { EQUIVALENT } from './equivalent';
import { type Mutant, mutantsOf, subjectsIn } from './mutants';

const STORE = join(__dirname, '../store/ledger');
const LEDGER = join(__dirname, '../../core/ledger/redis');

interface Stage {
  readonly name: string;
  readonly files: readonly string[];
  readonly grep: RegExp;
}

/** Returns the tests for the mutants of a script, the likeliest to fail first. */
function stagesOf(name: string): readonly Stage[] {
  if (name === 'mark') return [{ name: 'replicas', files: ['replicas.test.ts'], grep: /./ }];
  const contract = ['redis-ledger.test.ts'];
  return [
    { name: 'contract', files: contract, grep: /contract: in Redis/ },
    {
      name: 'Redis',
      files: contract,
      grep: /^the ledger in Redis|^the calendar|^deadlines|: full|without its scripts/,
    },
    { name: 'verification', files: ['verify.test.ts'], grep: /^verification of the ledger (?!in memory)/ },
    { name: 'random', files: ['ledger-property.test.ts'], grep: /./ },
    { name: 'allowances', files: ['allowance-ledger.test.ts'], grep: /^allowances / },
  ];
}

async function main(): Promise<void> {
  const { script, list } = new Command('npm run mutation --')
    .option('--script <names...>', 'only these scripts')
    .option('--list', 'show the mutants and run nothing')
    .parse()
    .opts<{ script?: string[]; list?: boolean }>();
  const subjects = subjectsIn(LEDGER, LEDGER_SCRIPTS).filter(({ name }) => script?.includes(name) ?? true);
  const survivors: Mutant[] = [];
  const table: string[] = [];
  await mochaGlobalSetup();
  const redis = new Redis(await emptyRedis());
  try {
    for (const each of subjects) {
      const mutants = await compiling(redis, mutantsOf(each));
      if (list === true) {
        for (const { line, change } of mutants) process.stdout.write(`${each.name}:${line} ${change}\n`);
        continue;
      }
      const caught = new Map<string, number>();
      const equivalent = mutants.filter(isEquivalent);
      for (const mutant of mutants.filter((one) => !isEquivalent(one))) {
        const by = await catchMutant(mutant);
        if (by === undefined) {
          survivors.push(mutant);
          process.stderr.write(`survived: ${mutant.name}.lua:${mutant.line} ${mutant.change}\n`);
        } else caught.set(by, (caught.get(by) ?? 0) + 1);
      }
      const tried = mutants.length - equivalent.length;
      const all = [...caught.values()].reduce((sum, count) => sum + count, 0);
      const by = [...caught].map(([stage, count]) => `${stage} ${count}`).join(', ');
      table.push(
        `${each.name.padEnd(14)} ${String(tried).padStart(4)} mutants ${String(all).padStart(4)} caught (${by})${
          equivalent.length === 0 ? '' : `, ${equivalent.length} equivalent left out`
        }`,
      );
      process.stdout.write(`${table.at(-1)}\n`);
    }
  } finally {
    redis.disconnect();
    await mochaGlobalTeardown();
  }
  for (const { name, line, change } of survivors) process.stdout.write(`SURVIVED ${name}.lua:${line} ${change}\n`);
  if (survivors.length > 0) process.exitCode = 1;
}

function isEquivalent({ name, change, line }: Mutant): boolean {
  return EQUIVALENT.some(
    (each) => each.script === name && change.startsWith(each.change) && (each.line ?? line) === line,
  );
}

/** Returns the mutants that Redis can load. A script that does not load breaks everything and proves nothing. */
async function compiling(redis: Redis, mutants: readonly Mutant[]): Promise<readonly Mutant[]> {
  const kept: Mutant[] = [];
  for (const mutant of mutants) {
    const loads = await Promise.all([...mutant.sources.values()].map((source) => redis.script('LOAD', source))).then(
      () => true,
      () => false,
    );
    if (loads) kept.push(mutant);
  }
  return kept;
}

/** Returns the stage that failed; undefined if the mutant survived. */
async function catchMutant({ name, sources }: Mutant): Promise<string | undefined> {
  const originals = [...sources.keys()].map((script) => ({ script, source: script.source }));
  for (const [script, source] of sources) replace(script, source);
  try {
    for (const stage of stagesOf(name)) if ((await failures(stage)) > 0) return stage.name;
    return undefined;
  } finally {
    for (const { script, source } of originals) replace(script, source);
  }
}

/** Replaces the source within the script object, which the ledger loads and calls from then on. */
function replace(script: LuaScript, source: string): void {
  Object.assign(script as { -readonly [K in keyof LuaScript]: LuaScript[K] }, { source });
}

/** Returns how many tests of a stage fail. @throws Error if it has none, because it would catch nothing */
async function failures({ name, files, grep }: Stage): Promise<number> {
  const mocha = new Mocha({ bail: true, timeout: 10_000, grep, reporter: Silent });
  for (const file of files) mocha.addFile(join(STORE, file));
  let total = 0;
  const count = await new Promise<number>((resolve) => {
    total = mocha.run(resolve).total;
  });
  if (total === 0) throw new Error(`stage "${name}": no title of a test matches ${grep}`);
  mocha.unloadFiles();
  mocha.dispose();
  return count;
}

class Silent extends Mocha.reporters.Base {
  override epilogue(): void {}
}

main()
  .catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
  })
  // Exits explicitly, because failed tests leave connections open.
  .finally(() => process.exit());
