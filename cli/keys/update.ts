import type { Verb } from '../command';
import { UsageError } from '../failure';
import { showOne } from '../output';
import { KEY_COLUMNS, type KeyShape } from '../shapes';
import { type LimitOptions, limitFields, limitOptions } from './limits';

interface Options extends LimitOptions {
  readonly name?: string;
  readonly models?: readonly string[];
  readonly allModels?: true;
  readonly markup?: string;
  readonly debug?: boolean;
}

const updateKey: Verb = (noun, open) => {
  const verb = noun
    .command('update <key>')
    .description('rename a key, or change its limits, its markup and which models it may call; "none" removes')
    .option('--name <name>', 'its new name')
    .option('--models <names...>', 'the only models this key may call')
    .option('--all-models', 'it may call every model')
    .option('--markup <markup>', 'what it pays: a factor such as 1.25, or a list under customerPrices')
    .option('--debug', 'it may ask how its calls are routed')
    .option('--no-debug', 'it may not');
  limitOptions(verb).action(
    async (key: string, { name, models, allModels, markup, debug, ...limits }: Options, command) => {
      if (models !== undefined && allModels) throw new UsageError('Give --models or --all-models, not both.');
      const allowedModels = allModels ? null : models;
      const changes = {
        ...(name === undefined ? {} : { name }),
        ...(allowedModels === undefined ? {} : { allowedModels }),
        ...(markup === undefined ? {} : { markup: markup === 'none' ? null : markup }),
        ...(debug === undefined ? {} : { debug }),
        ...limitFields(limits),
      };
      if (Object.keys(changes).length === 0)
        throw new UsageError('Give --name, --models, --all-models, --markup, --debug, --no-debug or a limit.');
      const { client, output } = open(command);
      const path = `/keys/${encodeURIComponent(key)}`;
      await showOne(output, await client.ask<KeyShape>('PATCH', path, changes), KEY_COLUMNS);
    },
  );
};

export default updateKey;
