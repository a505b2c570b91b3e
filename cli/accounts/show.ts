import type { Verb } from '../command';
import { showOne } from '../output';
import { ACCOUNT_COLUMNS, type AccountShape } from '../shapes';

const showAccount: Verb = (noun, open) => {
  noun
    .command('show <account>')
    .description('show an account with its balance')
    .action(async (account: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/accounts/${encodeURIComponent(account)}`;
      await showOne(output, await client.ask<AccountShape>('GET', path), ACCOUNT_COLUMNS);
    });
};

export default showAccount;
