import { resolve } from 'node:path';
import { problemText } from '../../core/configuration/yaml-file';
import { validateConfiguration } from '../../core/serving/validate-configuration';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { showText } from '../output';
import { folderOf } from './folder';

const validateConfig: Verb = (noun, open) => {
  noun
    .command('validate [folder]')
    .description('check gateway.config.yml and system.config.yml of a folder, without a gateway')
    .action(async (given: string | undefined, _options, command) => {
      const { output, environment } = open(command);
      const folder = resolve(folderOf(given, environment));
      const { configuration, problems, warnings } = validateConfiguration(folder, { ...environment });
      const revision = configuration?.revision ?? null;
      await showText(output, { ok: configuration !== undefined, revision, problems, warnings }, [
        ...problems.map(problemText),
        ...warnings.map((each) => `${problemText(each)} (warning)`),
        ...(revision === null ? [] : [`The configuration in ${folder} is valid (revision ${revision}).`]),
      ]);
      if (problems.length > 0)
        throw new Failure(`${problems.length} ${problems.length === 1 ? 'problem' : 'problems'} in ${folder}.`);
    });
};

export default validateConfig;
