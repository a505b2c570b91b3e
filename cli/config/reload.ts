import type { Answers } from '../../shapes/answers';
import type { Verb } from '../command';
import { showOne } from '../output';
import { withProblems } from './change';

type ReloadShape = Answers['POST /admin/v1/config/reload'];

const reloadConfig: Verb = (noun, open) => {
  noun
    .command('reload')
    .description('reload gateway.config.yml')
    .action(async (_options, command) => {
      const { client, output } = open(command);
      const reloaded = await withProblems(output, () => client.ask<ReloadShape>('POST', '/config/reload'));
      await showOne(output, reloaded, {
        revision: ({ revision }) => revision,
        before: ({ before }) => before,
        'restart needed for': ({ restartNeeded }) => restartNeeded.join(', ') || null,
      });
    });
};

export default reloadConfig;
