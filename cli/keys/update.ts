import type { Verb } from '../command';
import { UsageError } from '../failure';
import { showOne } from '../output';
import { KEY_COLUMNS, type KeyShape } from '../shapes';

interface Options {
  readonly name?: string;
  readonly models?: readonly string[];
  readonly allModels?: true;
}

const updateKey: Verb = (noun, open) => {
  noun
    .command('update <key>')
    .description('rename a key, or change which models it may call')
    .option('--name <name>', 'its new name')
    .option('--models <names...>', 'the only models this key may call')
    .option('--all-models', 'it may call every model')
    .action(async (key: string, { name, models, allModels }: Options, command) => {
      if (models !== undefined && allModels) throw new UsageError('Give --models or --all-models, not both.');
      const allowedModels = allModels ? null : models;
      const changes = {
        ...(name === undefined ? {} : { name }),
        ...(allowedModels === undefined ? {} : { allowedModels }),
      };
      if (Object.keys(changes).length === 0) throw new UsageError('Give --name, --models or --all-models.');
      const { client, output } = open(command);
      const path = `/keys/${encodeURIComponent(key)}`;
      await showOne(output, await client.ask<KeyShape>('PATCH', path, changes), KEY_COLUMNS);
    });
};

export default updateKey;
