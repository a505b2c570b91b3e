import type { Verb } from '../command';
import { showOne } from '../output';
import { ACCOUNT_COLUMNS, type AccountShape } from '../shapes';

const unfreezeAccount: Verb = (noun, open) => {
  noun
    .command('unfreeze <account>')
    .description('unfreeze an account: accept its calls again')
    .action(async (account: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/accounts/${encodeURIComponent(account)}/unfreeze`;
      await showOne(output, await client.ask<AccountShape>('POST', path, {}), ACCOUNT_COLUMNS);
    });
};

export default unfreezeAccount;
