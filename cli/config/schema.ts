import { resolve } from 'node:path';
import { Argument } from 'commander';
import { ConfigurationError } from '../../core/configuration/yaml-file';
import { type LoadedPlugins, loadPlugins } from '../../core/serving/load-plugins';
import { publishedGatewaySchema, publishedSystemSchema } from '../../core/serving/published-schema';
import type { Environment } from '../client';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { folderOf } from './folder';

const configSchema: Verb = (noun, open) => {
  noun
    .command('schema')
    .addArgument(
      new Argument('[file]', 'the file that the schema is for').choices(['gateway', 'system']).default('gateway'),
    )
    .argument('[folder]', 'a folder whose system.config.yml names the plugins to load')
    .description('print the JSON Schema of a configuration file, for editors')
    .action(async (file: 'gateway' | 'system', given: string | undefined, _options, command) => {
      const { output, environment } = open(command);
      const loaded = load(folderOf(given, environment), environment);
      const schema = file === 'gateway' ? publishedGatewaySchema(loaded) : publishedSystemSchema(loaded);
      await output.write(`${JSON.stringify(schema, null, 2)}\n`);
    });
};

function load(folder: string, environment: Environment): LoadedPlugins {
  try {
    return loadPlugins(resolve(folder), { ...environment });
  } catch (error) {
    if (error instanceof ConfigurationError)
      throw new Failure(`The configuration in ${folder} has errors:\n${error.message}`, { cause: error });
    throw error;
  }
}

export default configSchema;
