import { resolve } from 'node:path';
import { Argument } from 'commander';
import { loadPlugins } from '../../core/load-plugins';
import { publishedGatewaySchema, publishedSystemSchema } from '../../core/published-schema';
import type { Verb } from '../command';
import { folderOf } from './folder';

const configSchema: Verb = (noun, open) => {
  noun
    .command('schema')
    .addArgument(new Argument('[file]', 'of which file').choices(['gateway', 'system']).default('gateway'))
    .argument('[folder]', 'whose system.config.yml says which plugins are loaded')
    .description('print the JSON Schema of a configuration file, for editors')
    .action(async (file: 'gateway' | 'system', given: string | undefined, _options, command) => {
      const { output, environment } = open(command);
      const loaded = loadPlugins(resolve(folderOf(given, environment)), { ...environment });
      const schema = file === 'gateway' ? publishedGatewaySchema(loaded) : publishedSystemSchema(loaded);
      await output.write(`${JSON.stringify(schema, null, 2)}\n`);
    });
};

export default configSchema;
