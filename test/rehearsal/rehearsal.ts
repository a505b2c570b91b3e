import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeBridges } from './bridges';
import type { Checkout } from './checkout';
import { clone } from './clone';
import { commandsFor } from './commands';
import { makeDebian } from './debian';
import type { Options } from './options';
import type { Outcome, RunReport, StepReport } from './report';
import { ask, run } from './run';
import { environmentOf, furnish } from './settings';

/** Where the checkout is in the bare machine. */
const CHECKOUT = join('/srv', 'checkout');

export interface Plan {
  readonly options: Options;
  /** The commit that is rehearsed. */
  readonly commit: string;
  /** The Debian release of the bare machine. */
  readonly codename: string;
}

/** Rehearses as often as asked, each time in a fresh root. After the signal it only removes what it made. */
export async function rehearse(plan: Plan, signal: AbortSignal): Promise<readonly RunReport[]> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-rehearsal-'));
  const runs: RunReport[] = [];
  try {
    while (runs.length < plan.options.times && !signal.aborted) runs.push(await rehearseOnce(plan, folder, signal));
    return runs;
  } finally {
    await remove(folder);
  }
}

async function rehearseOnce(plan: Plan, folder: string, signal: AbortSignal): Promise<RunReport> {
  const root = join(folder, 'root');
  const steps: StepReport[] = [];
  try {
    for (const step of stepsOf(plan, join(folder, 'debian'), root)) {
      process.stderr.write(`\n== ${step.name}\n`);
      steps.push(await take(step, signal));
      if (signal.aborted || (step.isNeeded && steps.at(-1)?.problem !== undefined)) break;
    }
    return { steps };
  } finally {
    await removeBridges(root);
    await remove(root);
  }
}

interface Step {
  readonly name: string;
  readonly withinMs: number;
  /** Whether the steps after it need it to succeed. */
  readonly isNeeded: boolean;
  readonly work: (signal: AbortSignal) => Promise<Outcome | undefined>;
}

const PREPARED_WITHIN_MS = 30 * 60_000;

/** The first run makes the Debian that each run copies. */
function stepsOf({ options, commit, codename }: Plan, debian: string, root: string): readonly Step[] {
  const at: Checkout = { root, folder: CHECKOUT, env: environmentOf(process.env, process.execPath, homedir()) };
  const preparation = (name: string, work: (signal: AbortSignal) => Promise<void>): Step => ({
    name,
    withinMs: PREPARED_WITHIN_MS,
    isNeeded: true,
    work: async (signal) => void (await work(signal)),
  });
  return [
    ...(existsSync(debian) ? [] : [preparation('debootstrap', (signal) => makeDebian(debian, codename, signal))]),
    preparation('copy of Debian', (signal) => run(['cp', '--archive', '--reflink=auto', debian, root], signal)),
    preparation('Node and settings', (signal) => furnish(root, signal)),
    preparation('git clone', (signal) => clone(commit, join(root, CHECKOUT), signal)),
    ...commandsFor(options).map(({ run, ...command }) => ({
      ...command,
      isNeeded: false,
      work: (signal: AbortSignal) => run(at, signal),
    })),
  ];
}

async function take({ name, withinMs, work }: Step, signal: AbortSignal): Promise<StepReport> {
  const begunMs = performance.now();
  const ends = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  const outcome = await work(ends).catch((error: unknown) => ({ problem: String(error), failures: [] }));
  const seconds = (performance.now() - begunMs) / 1_000;
  const stopped = ends.aborted
    ? { problem: signal.aborted ? 'interrupted' : `not within ${withinMs / 60_000} minutes` }
    : {};
  return { step: name, seconds, failures: [], ...outcome, ...stopped };
}

/** Removes a folder, but no file below a mount: all mounts should have ended. `setsid` keeps a second Ctrl-C away from it. */
async function remove(folder: string): Promise<void> {
  await ask('setsid', ['--wait', 'rm', '-rf', '--one-file-system', folder]);
}
