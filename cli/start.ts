import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import type { Verb } from './command';
import { folderOf } from './config';
import { Ended, Failure } from './failure';
import { OWN_FOLDER } from './init';

/** The number that a shell adds to the number of a signal. The sum is the exit status of a program that the signal ended. */
const ENDED_BY_SIGNAL = 128;

const start: Verb = (root, open) => {
  root
    .command('start [folder]')
    .description('start the gateway with the YAML files of a folder; its data is in DATA_DIR, or in .tollgate there')
    .option('--demo', 'add a demo upstream, an account and a key, and print how to use them')
    .action(async (given: string | undefined, { demo = false }: { readonly demo?: boolean }, command) => {
      const { environment, output } = open(command);
      const folder = resolve(folderOf(given, environment));
      if (!existsSync(join(folder, 'system.config.yml')))
        throw new Failure(
          `${folder} has no system.config.yml. Create a folder with one by \`tollgate init <folder>\`.`,
        );
      const program = join(OWN_FOLDER, demo ? 'demo/quickstart.mjs' : 'dist/server.js');
      if (!existsSync(program))
        throw new Failure(`${program} does not exist. In a checkout, create it with \`npm run build\`.`);
      const dataFolder = resolve(environment['DATA_DIR'] || join(folder, '.tollgate'));
      const env = { ...environment, TOLLGATE_CONFIG_DIR: folder, DATA_DIR: dataFolder };
      throw new Ended(await run(program, demo && output.json ? ['--json'] : [], env));
    });
};

/** Runs a child program with this program's standard streams until it ends. Returns its exit status. */
async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(process.execPath, [program, ...args], { stdio: 'inherit', env });
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  // The terminal sends these signals to this program and to its child. A forwarded signal would be the child's second, which means "stop at once".
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return code ?? ENDED_BY_SIGNAL + (signal === null ? 0 : constants.signals[signal]);
}

export default start;
