import { resolve } from 'node:path';
import type { Configuration } from '../../core/configuration/configuration';
import { problemText } from '../../core/configuration/yaml-file';
import { validateConfiguration } from '../../core/serving/validate-configuration';
import type { Environment } from '../client';
import { Failure } from '../failure';
import { folderOf } from './folder';

/** Returns the valid configuration of a folder. @throws Failure that lists all its mistakes */
export function soundConfiguration(given: string | undefined, environment: Environment): Configuration {
  const folder = resolve(folderOf(given, environment));
  const { configuration, problems } = validateConfiguration(folder, { ...environment });
  if (configuration !== undefined) return configuration;
  throw new Failure(`the configuration in ${folder} has errors:\n${problems.map(problemText).join('\n')}`);
}
