import type { Verb } from '../command';
import { showOne } from '../output';
import { ACCOUNT_COLUMNS, type AccountShape } from '../shapes';

const createAccount: Verb = (noun, open) => {
  noun
    .command('create <name>')
    .description('create an account')
    .option('--markup <markup>', 'the markup of its keys: a factor such as 1.25, or a list under customerPrices')
    .action(async (name: string, { markup }: { readonly markup?: string }, command) => {
      const { client, output } = open(command);
      await showOne(output, await client.ask<AccountShape>('POST', '/accounts', { name, markup }), ACCOUNT_COLUMNS);
    });
};

export default createAccount;
