import { resolve } from 'node:path';
import type { Configuration } from '../../core/configuration';
import { changesBetween, meaningOf } from '../../core/configuration-meaning';
import { validateConfiguration } from '../../core/validate-configuration';
import { problemText } from '../../core/yaml-file';
import type { Environment } from '../client';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { showList } from '../output';
import { CHANGE_COLUMNS } from './change';

const diffConfig: Verb = (noun, open) => {
  noun
    .command('diff <before> <after>')
    .description('what another folder of configuration would change: routes, candidates, prices, settings')
    .action(async (before: string, after: string, _options, command) => {
      const { output, environment } = open(command);
      const old = meaningOf(soundConfiguration(before, environment));
      const items = changesBetween(old, meaningOf(soundConfiguration(after, environment)));
      if (items.length === 0 && !output.json) return output.note('Both say the same.');
      await showList(output, { items }, CHANGE_COLUMNS);
    });
};

function soundConfiguration(folder: string, environment: Environment): Configuration {
  const { configuration, problems } = validateConfiguration(resolve(folder), { ...environment });
  if (configuration !== undefined) return configuration;
  throw new Failure(`the configuration in ${folder} has mistakes:\n${problems.map(problemText).join('\n')}`);
}

export default diffConfig;
