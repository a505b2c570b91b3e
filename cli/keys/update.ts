import type { Verb } from '../command';
import { UsageError } from '../failure';
import { showOne } from '../output';
import { KEY_COLUMNS, type KeyShape } from '../shapes';
import { EXPIRY, toExpiry } from '../time';
import { limitFields, limitOptions } from './limits';

interface Options {
  readonly name?: string;
  readonly models?: readonly string[];
  readonly allModels?: true;
  readonly markup?: string;
  readonly debug?: boolean;
  readonly expires?: string;
  readonly addresses?: readonly string[];
  readonly allAddresses?: true;
}

const updateKey: Verb = (noun, open) => {
  const verb = noun
    .command('update <key>')
    .description(
      'rename a key, or change its limits, its markup, its expiry, and which models and addresses it may use; "none" removes',
    )
    .option('--name <name>', 'its new name')
    .option('--models <names...>', 'the only models this key may call')
    .option('--all-models', 'allow every model')
    .option('--markup <markup>', 'its markup: a factor such as 1.25, or a list under customerPrices')
    .option('--debug', 'allow it to request the reasons of routing decisions')
    .option('--no-debug', 'do not allow that')
    .option('--expires <when>', EXPIRY)
    .option('--addresses <ranges...>', 'allow it only from these addresses, such as 203.0.113.0/24')
    .option('--all-addresses', 'allow it from every address');
  limitOptions(verb).action(
    async (
      key: string,
      { name, models, allModels, markup, debug, expires, addresses, allAddresses, ...limits }: Options,
      command,
    ) => {
      if (models !== undefined && allModels) throw new UsageError('Give --models or --all-models, not both.');
      if (addresses !== undefined && allAddresses)
        throw new UsageError('Give --addresses or --all-addresses, not both.');
      const allowedAddresses = allAddresses ? null : addresses;
      const allowedModels = allModels ? null : models;
      const changes = {
        ...(name === undefined ? {} : { name }),
        ...(allowedModels === undefined ? {} : { allowedModels }),
        ...(markup === undefined ? {} : { markup: markup === 'none' ? null : markup }),
        ...(debug === undefined ? {} : { debug }),
        ...(expires === undefined ? {} : { expiresAt: toExpiry(expires) }),
        ...(allowedAddresses === undefined ? {} : { allowedAddresses }),
        ...limitFields(limits),
      };
      if (Object.keys(changes).length === 0)
        throw new UsageError(
          'Give --name, --models, --all-models, --markup, --debug, --no-debug, --expires, --addresses, --all-addresses or a limit.',
        );
      const { client, output } = open(command);
      const path = `/keys/${encodeURIComponent(key)}`;
      await showOne(output, await client.ask<KeyShape>('PATCH', path, changes), KEY_COLUMNS);
    },
  );
};

export default updateKey;
