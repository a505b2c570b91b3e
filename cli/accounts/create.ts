import type { Verb } from '../command';
import { showOne } from '../output';
import { ACCOUNT_COLUMNS, type AccountShape } from '../shapes';

const createAccount: Verb = (noun, open) => {
  noun
    .command('create <name>')
    .description('create an account')
    .action(async (name: string, _options, command) => {
      const { client, output } = open(command);
      await showOne(output, await client.ask<AccountShape>('POST', '/accounts', { name }), ACCOUNT_COLUMNS);
    });
};

export default createAccount;
