import { changesBetween, meaningOf } from '../../core/configuration/meaning';
import type { Verb } from '../command';
import { showList } from '../output';
import { CHANGE_COLUMNS } from './change';
import { soundConfiguration } from './sound';

const diffConfig: Verb = (noun, open) => {
  noun
    .command('diff <before> <after>')
    .description('show what another configuration folder would change: routes, candidates, prices, settings')
    .action(async (before: string, after: string, _options, command) => {
      const { output, environment } = open(command);
      const old = meaningOf(soundConfiguration(before, environment));
      const items = changesBetween(old, meaningOf(soundConfiguration(after, environment)));
      if (items.length === 0 && !output.json) return output.note('Both configurations are equal.');
      await showList(output, { items }, CHANGE_COLUMNS);
    });
};

export default diffConfig;
