import type { Verb } from '../command';
import { showOne } from '../output';
import { ACCOUNT_COLUMNS, type AccountShape } from '../shapes';

const freezeAccount: Verb = (noun, open) => {
  noun
    .command('freeze <account>')
    .description('freeze an account: refuse all its further calls')
    .action(async (account: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/accounts/${encodeURIComponent(account)}/freeze`;
      await showOne(output, await client.ask<AccountShape>('POST', path, {}), ACCOUNT_COLUMNS);
    });
};

export default freezeAccount;
