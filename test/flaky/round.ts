import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export interface Round {
  readonly passed: number;
  readonly failures: readonly { readonly title: string; readonly message: string }[];
  readonly seconds: number;
}

/** The report of mocha's JSON reporter. */
interface Report {
  readonly stats: { readonly passes: number };
  readonly failures: readonly { readonly fullTitle: string; readonly err: { readonly message?: string } }[];
}

const PROJECT = resolve(__dirname, '../..');
const MOCHA = join(PROJECT, 'node_modules/mocha/bin/mocha.js');

/** The Node that runs mocha, and variables for it. */
export interface Runtime {
  readonly node: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Runs mocha once over these files. A round without a report counts as one failure, with mocha's output. */
export async function runRound(
  files: readonly string[],
  grep: string | undefined,
  runtime: Runtime = { node: process.execPath, env: {} },
): Promise<Round> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-flaky-'));
  const report = join(folder, 'report.json');
  const begunMs = performance.now();
  const printed = await runMocha([...mochaOptions(files, grep), '--reporter-option', `output=${report}`], runtime);
  const seconds = Math.round((performance.now() - begunMs) / 1_000);
  try {
    const { stats, failures } = JSON.parse(await readFile(report, 'utf8')) as Report;
    return {
      passed: stats.passes,
      failures: failures.map(({ fullTitle, err }) => ({ title: fullTitle, message: firstLine(err.message) })),
      seconds,
    };
  } catch {
    return { passed: 0, failures: [{ title: 'mocha wrote no report', message: printed.trim() }], seconds };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function mochaOptions(files: readonly string[], grep: string | undefined): string[] {
  const specs = files.filter((file) => !file.startsWith('!'));
  const ignored = files.filter((file) => file.startsWith('!')).flatMap((file) => ['--ignore', file.slice(1)]);
  const isOneFile = specs.length === 1 && !/[*{]/.test(specs[0] ?? '');
  return [
    ...specs,
    ...ignored,
    ...(isOneFile ? [] : ['--parallel', '--jobs', '2']),
    ...(grep === undefined ? [] : ['--fgrep', grep]),
    '--reporter',
    'json',
  ];
}

const CHARACTERS_KEPT = 2_000;

async function runMocha(args: readonly string[], { node, env }: Runtime): Promise<string> {
  const child = spawn(node, [MOCHA, ...args], {
    cwd: PROJECT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', (chunk: Buffer) => {
      printed = (printed + chunk.toString()).slice(-CHARACTERS_KEPT);
    });
  }
  await new Promise((done, failed) => child.once('error', failed).once('close', done));
  return printed;
}

function firstLine(message = ''): string {
  return message.split('\n')[0] ?? '';
}
