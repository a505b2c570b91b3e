/**
 * `npm run rehearse`: performs a newcomer's first steps on a bare machine. Exit status 1 when a step fails, 2 when this machine cannot rehearse or
 * the arguments are wrong, 130 or 143 when SIGINT or SIGTERM ended it.
 */
import { constants } from 'node:os';
import { CommanderError } from 'commander';
import { PROJECT } from '../support/sources';
import { type Options, readOptions } from './options';
import { rehearse } from './rehearsal';
import { hasFailed, type Report } from './report';
import { codenameOf, thisMachine, unmetRequirement } from './requirements';
import { ask } from './run';
import { tableOf } from './table';

const EXIT_UNUSABLE = 2;

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  const machine = thisMachine();
  const unmet = unmetRequirement(machine);
  if (unmet !== undefined) {
    process.stderr.write(`${unmet}\n`);
    return EXIT_UNUSABLE;
  }
  const interrupted = signalOfOperator();
  const report = await reportOn(options, codenameOf(machine.osRelease) ?? '', interrupted);
  process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : tableOf(report.runs));
  if (interrupted.aborted) return 128 + constants.signals[interrupted.reason as 'SIGINT' | 'SIGTERM'];
  return hasFailed(report) ? 1 : 0;
}

async function reportOn(options: Options, codename: string, signal: AbortSignal): Promise<Report> {
  const commit = (await ask('git', ['-C', PROJECT, 'rev-parse', 'HEAD'])).trim();
  if ((await ask('git', ['-C', PROJECT, 'status', '--porcelain'])) !== '')
    process.stderr.write('Changes that are not committed are not rehearsed.\n');
  const runs = await rehearse({ options, commit, codename }, signal);
  return { commit, debian: codename, node: process.versions.node, runs };
}

/** Aborts with the name of the first signal. A second one changes nothing: the first one's removal goes to its end. */
function signalOfOperator(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => controller.abort(name));
  return controller.signal;
}

main().then(
  (status) => {
    process.exitCode = status;
  },
  (error: unknown) => {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : EXIT_UNUSABLE;
    else {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exitCode = 1;
    }
  },
);
