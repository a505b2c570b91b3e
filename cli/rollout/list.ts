import type { Verb } from '../command';
import { showList } from '../output';
import type { ListShape } from '../shapes';
import { ROLLOUT_COLUMNS, type RolloutShape } from './shape';

const listRollouts: Verb = (noun, open) => {
  noun
    .command('list')
    .description('list rollouts with their progress')
    .action(async (_options, command) => {
      const { client, output } = open(command);
      await showList(output, await client.ask<ListShape<RolloutShape>>('GET', '/rollouts'), ROLLOUT_COLUMNS);
    });
};

export default listRollouts;
