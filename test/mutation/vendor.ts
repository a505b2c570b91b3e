/**
 * `npm run mutation:vendor`: breaks on purpose what holds and charges are made of, one thing at a time, in a copy of the project, and
 * shows that a story about a vendor's bill notices. Exit status 1 when a mutant survives.
 */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Command } from 'commander';
import { run } from '../preparation/run';
import { positive, runProgram } from '../support/program';
import { PROJECT } from '../support/sources';
import { VENDOR_MUTANTS, type VendorMutant } from './vendor-mutants';

/** The compiler's cache in `dist` is copied: each mutant compiles one file anew. */
const NOT_COPIED = new Set(['node_modules', '.git', '.tollgate', '.cache']);

interface Failure {
  readonly title: string;
  readonly err: { readonly message?: string };
}

const command = new Command('npm run mutation:vendor --')
  .description('Breaks holds and charges in a copy of the project. STORES is embedded (default) or real.')
  .option('--only <text>', 'only mutants whose name contains this')
  .option('--calls <n>', 'calls at the adversarial vendor', positive, 400)
  .addHelpText('after', `\nMutants:\n${VENDOR_MUTANTS.map(({ name }) => `  ${name}`).join('\n')}`);

async function main(): Promise<void> {
  const { only = '', calls } = command.parse().opts<{ only?: string; calls: number }>();
  const mutants = VENDOR_MUTANTS.filter(({ name }) => name.includes(only));
  if (mutants.length === 0) command.error(`no mutant is named "${only}"; see --help`);
  const copy = await copyOfProject();
  try {
    for (const story of new Set(mutants.map((each) => each.story))) await mustPass(copy, story, calls);
    for (const mutant of mutants) {
      const failure = await failureOf(copy, mutant, calls);
      if (failure === undefined) process.exitCode = 1;
      process.stdout.write(`${failure === undefined ? 'SURVIVED' : 'caught  '} ${rowOf(mutant, failure)}\n`);
    }
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

async function copyOfProject(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'tollgate-mutants-'));
  await cp(PROJECT, copy, { recursive: true, filter: (path) => !NOT_COPIED.has(basename(path)) });
  await symlink(join(PROJECT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** A story that fails anyway says nothing about mutants. */
async function mustPass(copy: string, story: string, calls: number): Promise<void> {
  const [failure] = await failuresOf(copy, story, calls);
  if (failure !== undefined) throw new Error(`${story} fails without a mutant: ${messageOf(failure)}`);
}

/** Returns how the story noticed; undefined when it did not. */
async function failureOf(copy: string, mutant: VendorMutant, calls: number): Promise<Failure | undefined> {
  const path = join(copy, mutant.file);
  const text = await readFile(path, 'utf8');
  const [before, after, ...more] = text.split(mutant.from);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`"${mutant.from}" does not stand once in ${mutant.file}: change the mutant "${mutant.name}"`);
  await writeFile(path, `${before}${mutant.to}${after}`);
  try {
    return (await failuresOf(copy, mutant.story, calls))[0];
  } finally {
    await writeFile(path, text);
  }
}

/** @throws where the copy does not compile, or the story does not run to its end */
async function failuresOf(copy: string, story: string, calls: number): Promise<readonly Failure[]> {
  const options = { cwd: copy, report: () => undefined };
  const inCopy = (file: string) => join(copy, 'node_modules', file);
  await run(process.execPath, [inCopy('typescript/bin/tsc'), '-p', 'tsconfig.build.json'], options);
  const results = join(copy, 'results.json');
  await rm(results, { force: true });
  const env = { STORES: 'embedded', ...process.env, ADVERSARY_CALLS: String(calls) };
  const reporter = ['--bail', '--reporter', 'json', '--reporter-option', `output=${results}`];
  const ended = run(process.execPath, [inCopy('mocha/bin/mocha.js'), ...reporter, story], { ...options, env });
  const failed = await ended.catch((error: Error) => error);
  const text = await readFile(results, 'utf8').catch(() => undefined);
  if (text === undefined) throw new Error(`${story} did not run to its end`, { cause: failed });
  const { stats, failures } = JSON.parse(text) as { stats: { tests: number }; failures: readonly Failure[] };
  if (stats.tests === 0) throw new Error(`${story} has no test`);
  return failures;
}

function rowOf({ name, story }: VendorMutant, failure: Failure | undefined): string {
  const by = failure === undefined ? '' : `: ${messageOf(failure)}`;
  return `${name.padEnd(44)} ${basename(story, '.test.ts')}${by}`;
}

function messageOf({ title, err }: Failure): string {
  return `"${title}" fails: ${err.message?.split('\n')[0]?.slice(0, 120)}`;
}

void runProgram(main);
