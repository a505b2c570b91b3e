import { Command, InvalidArgumentError, Option } from 'commander';

export interface Options {
  readonly times: number;
  readonly only?: 'quickstart' | 'test';
  readonly ci: boolean;
  readonly json: boolean;
}

/** Reads the command line. Throws a `CommanderError` for `--help` and for arguments it does not know. */
export function readOptions(
  words: readonly string[],
  writeErr: (text: string) => void = (text) => process.stderr.write(text),
): Options {
  return new Command('npm run rehearse --')
    .description(
      "Runs the README's two commands on HEAD in a bare Debian with Node and nothing else, and times each step.",
    )
    .option('--times <n>', 'rehearse that many times in a row, each in a fresh root', count, 1)
    .addOption(new Option('--only <command>', 'run one of the two commands').choices(['quickstart', 'test']))
    .addOption(new Option('--ci', 'run .ci/run instead of the two commands').default(false).conflicts('only'))
    .option('--json', 'print the times as JSON', false)
    .allowExcessArguments(false)
    .configureOutput({ writeErr })
    .exitOverride()
    .parse(words, { from: 'user' })
    .opts<Options>();
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('not a whole number above 0.');
  return value;
}
