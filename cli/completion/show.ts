import { Argument, type Command } from 'commander';
import type { Verb } from '../command';
import { bashScript } from './bash';
import { completionWords } from './words';
import { zshScript } from './zsh';

const SCRIPTS = { bash: bashScript, zsh: zshScript } as const;

/** Adds itself last, because it completes only the commands that exist by then. */
const showCompletion: Verb = (root, open) => {
  root
    .command('completion')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SCRIPTS)))
    .description('print the completion script for a shell: source <(tollgate completion bash)')
    .action(async (shell: keyof typeof SCRIPTS, _options, command: Command) => {
      await open(command).output.write(SCRIPTS[shell](completionWords(root)));
    });
};

export default showCompletion;
