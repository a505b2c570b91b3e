import type { Verb } from '../command';
import { soundConfiguration } from '../config';
import { Failure } from '../failure';
import { showList } from '../output';
import { DIFFERENCE_COLUMNS, differencesOf, publishedEntries } from './differences';

const checkPrices: Verb = (noun, open) => {
  noun
    .command('check [folder]')
    .description('list every difference between the models of a configuration and what their vendors publish')
    .action(async (given: string | undefined, _options, command) => {
      const { output, environment } = open(command);
      const entries = publishedEntries(soundConfiguration(given, environment));
      const items = entries.flatMap(differencesOf);
      const models = entries.length === 1 ? '1 model' : `${entries.length} models`;
      if (items.length === 0 && !output.json) return output.note(`${models} with published prices: no difference.`);
      await showList(output, { items }, DIFFERENCE_COLUMNS);
      if (items.length > 0)
        throw new Failure(
          `${items.length === 1 ? '1 difference' : `${items.length} differences`} in ${models}. Write the published values with: tollgate prices update`,
        );
    });
};

export default checkPrices;
