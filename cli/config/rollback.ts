import type { Verb } from '../command';
import { type ChangeOptions, changeConfiguration, withChangeOptions, withProblemsOf } from './change';

const rollbackConfig: Verb = (noun, open) => {
  withChangeOptions(noun.command('rollback <revision>'))
    .description('have every node take a configuration that was applied before, by its number or its revision')
    .action(async (revision: string, options: ChangeOptions, command) => {
      const session = open(command);
      const path = `/config/revisions/${encodeURIComponent(revision)}/rollback`;
      await withProblemsOf(`revision ${revision}`, session.output, () =>
        changeConfiguration(session, path, {}, options),
      );
    });
};

export default rollbackConfig;
