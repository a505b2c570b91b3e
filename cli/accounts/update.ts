import type { Verb } from '../command';
import { UsageError } from '../failure';
import { showOne } from '../output';
import { ACCOUNT_COLUMNS, type AccountShape } from '../shapes';

interface Options {
  readonly name?: string;
  readonly markup?: string;
}

const updateAccount: Verb = (noun, open) => {
  noun
    .command('update <account>')
    .description('rename an account, or change the markup of its keys')
    .option('--name <name>', 'its new name')
    .option('--markup <markup>', 'a factor such as 1.25, or a list under customerPrices; "none" removes it')
    .action(async (account: string, { name, markup }: Options, command) => {
      const changes = {
        ...(name === undefined ? {} : { name }),
        ...(markup === undefined ? {} : { markup: markup === 'none' ? null : markup }),
      };
      if (Object.keys(changes).length === 0) throw new UsageError('Give --name or --markup.');
      const { client, output } = open(command);
      const path = `/accounts/${encodeURIComponent(account)}`;
      await showOne(output, await client.ask<AccountShape>('PATCH', path, changes), ACCOUNT_COLUMNS);
    });
};

export default updateAccount;
