import { Command, CommanderError } from 'commander';
import type { Environment } from './client';
import { sessions } from './command';
import showCompletion from './completion';
import { Ended, Failure, UsageError } from './failure';
import init from './init';
import { NOUNS, showBalance } from './nouns';
import type { Output } from './output';
import start from './start';

const { version: VERSION } = require('tollgate/package.json') as { readonly version: string };

const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/** Runs one command line, given without the program's name. @returns the exit status */
export async function run(
  args: readonly string[],
  environment: Environment,
  output: Omit<Output, 'json'>,
): Promise<number> {
  try {
    await program(environment, output).parseAsync([...args], { from: 'user' });
    return EXIT.done;
  } catch (error) {
    // Commander has already printed the message. Its exit code is 0 after --help and --version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    if (error instanceof Ended) return error.status;
    if (!(error instanceof Failure || error instanceof UsageError)) throw error;
    output.note(`tollgate: ${error.message}`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}

function program(environment: Environment, output: Omit<Output, 'json'>): Command {
  const open = sessions(environment, output);
  const root = new Command('tollgate')
    .description('Operates a Tollgate gateway through its admin listener (TOLLGATE_URL, TOLLGATE_TOKEN).')
    .version(VERSION, '--version', 'show the version')
    .option('--json', 'print JSON for programs instead of tables')
    .showHelpAfterError('(add --help for usage)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void output.write(text),
      writeErr: (text) => output.note(text.trimEnd()),
    })
    .hook('preAction', (_root, verb) => refuseEmpty(verb));
  for (const [name, { summary, verbs }] of Object.entries(NOUNS)) {
    const noun = root.command(name).description(summary);
    for (const verb of verbs) verb(noun, open);
  }
  init(root, open);
  start(root, open);
  showBalance(root, open);
  showCompletion(root, open);
  return root;
}

/** Rejects an empty argument, because it most likely comes from an unset shell variable and the gateway's error would not say so. */
function refuseEmpty({ args, registeredArguments }: Command): void {
  const empty = registeredArguments[args.indexOf('')];
  if (empty !== undefined)
    throw new UsageError(`The argument <${empty.name()}> is empty. Check that its shell variable is set.`);
}
