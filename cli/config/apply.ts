import { readFile } from 'node:fs/promises';
import type { Verb } from '../command';
import { Failure } from '../failure';
import type { Output } from '../output';
import { type ChangeOptions, changeConfiguration, withChangeOptions, withProblems } from './change';

const applyConfig: Verb = (noun, open) => {
  withChangeOptions(noun.command('apply'))
    .description('apply a gateway.config.yml to every node, after a check, a comparison and a confirmation')
    .requiredOption('--from <file>', 'the file, or - for standard input')
    .action(async ({ from, ...options }: ChangeOptions & { from: string }, command) => {
      const session = open(command);
      const text = await read(from, session.output);
      const change = () => changeConfiguration(session, '/config/revisions', { text }, options);
      await withProblems(session.output, change, from);
    });
};

async function read(from: string, output: Output): Promise<string> {
  if (from === '-') return output.read();
  try {
    return await readFile(from, 'utf8');
  } catch (cause) {
    throw new Failure(`${from} cannot be read (${(cause as { code?: string }).code ?? 'unreadable'}).`, { cause });
  }
}

export default applyConfig;
