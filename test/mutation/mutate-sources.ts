/** Breaks the project on purpose, one thing at a time, in a copy, and shows that a test fails. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Command } from 'commander';
import { run } from '../preparation/run';
import { PROJECT } from '../support/sources';

/** One mistake in a source file. */
export interface SourceMutant {
  readonly name: string;
  readonly file: string;
  /** The text to replace, which occurs once in the file. */
  readonly from: string;
  readonly to: string;
  /** The test file that must fail. */
  readonly story: string;
}

/** Folders without a copy. The compiler's cache in `dist` is copied, so that each mutant compiles one file. */
const NOT_COPIED = new Set(['node_modules', '.git', '.tollgate', '.cache']);

interface Failure {
  readonly title: string;
  readonly err: { readonly message?: string };
}

/** Returns the mutants whose name contains a text. */
export function mutantsNamed(
  mutants: readonly SourceMutant[],
  text: string,
  command: Command,
): readonly SourceMutant[] {
  const named = mutants.filter(({ name }) => name.includes(text));
  if (named.length === 0) command.error(`no mutant is named "${text}"; see --help`);
  return named;
}

/** Runs the mutants. Sets exit status 1 when one survives. */
export async function mutateSources(mutants: readonly SourceMutant[], env: NodeJS.ProcessEnv): Promise<void> {
  const copy = await copyOfProject();
  try {
    for (const story of new Set(mutants.map((each) => each.story))) await mustPass(copy, story, env);
    for (const mutant of mutants) {
      const failure = await failureOf(copy, mutant, env);
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

/** Throws if the test fails without a mutant, because it would then prove nothing. */
async function mustPass(copy: string, story: string, env: NodeJS.ProcessEnv): Promise<void> {
  const [failure] = await failuresOf(copy, story, env);
  if (failure !== undefined) throw new Error(`${story} fails without a mutant: ${messageOf(failure)}`);
}

/** Returns the failure that the mutant causes; undefined if it survives. */
async function failureOf(copy: string, mutant: SourceMutant, env: NodeJS.ProcessEnv): Promise<Failure | undefined> {
  const path = join(copy, mutant.file);
  const text = await readFile(path, 'utf8');
  const [before, after, ...more] = text.split(mutant.from);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`"${mutant.from}" does not stand once in ${mutant.file}: change the mutant "${mutant.name}"`);
  await writeFile(path, `${before}${mutant.to}${after}`);
  try {
    return (await failuresOf(copy, mutant.story, env))[0];
  } finally {
    await writeFile(path, text);
  }
}

/** @throws where the copy does not compile, or the story does not run to its end */
async function failuresOf(copy: string, story: string, env: NodeJS.ProcessEnv): Promise<readonly Failure[]> {
  const options = { cwd: copy, report: () => undefined };
  const inCopy = (file: string) => join(copy, 'node_modules', file);
  await run(process.execPath, [inCopy('typescript/bin/tsc'), '-p', 'tsconfig.build.json'], options);
  const results = join(copy, 'results.json');
  await rm(results, { force: true });
  const all = { STORES: 'embedded', ...process.env, ...env };
  const reporter = ['--bail', '--reporter', 'json', '--reporter-option', `output=${results}`];
  const ended = run(process.execPath, [inCopy('mocha/bin/mocha.js'), ...reporter, story], { ...options, env: all });
  const failed = await ended.catch((error: Error) => error);
  const text = await readFile(results, 'utf8').catch(() => undefined);
  if (text === undefined) throw new Error(`${story} did not run to its end`, { cause: failed });
  const { stats, failures } = JSON.parse(text) as { stats: { tests: number }; failures: readonly Failure[] };
  if (stats.tests === 0) throw new Error(`${story} has no test`);
  return failures;
}

function rowOf({ name, story }: SourceMutant, failure: Failure | undefined): string {
  const by = failure === undefined ? '' : `: ${messageOf(failure)}`;
  return `${name.padEnd(44)} ${basename(story, '.test.ts')}${by}`;
}

function messageOf({ title, err }: Failure): string {
  return `"${title}" fails: ${err.message?.split('\n')[0]?.slice(0, 120)}`;
}
