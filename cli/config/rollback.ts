import type { Verb } from '../command';
import { type ChangeOptions, changeConfiguration, withChangeOptions, withProblems } from './change';

const rollbackConfig: Verb = (noun, open) => {
  withChangeOptions(noun.command('rollback <revision>'))
    .description('apply an earlier configuration to every node, by its number or its revision')
    .action(async (revision: string, options: ChangeOptions, command) => {
      const session = open(command);
      const path = `/config/revisions/${encodeURIComponent(revision)}/rollback`;
      const change = () => changeConfiguration(session, path, {}, options);
      await withProblems(session.output, change, `revision ${revision}`);
    });
};

export default rollbackConfig;
