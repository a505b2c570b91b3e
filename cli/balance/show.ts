import type { Verb } from '../command';
import { showOne } from '../output';
import type { AccountShape } from '../shapes';

const showBalance: Verb = (root, open) => {
  root
    .command('balance <account>')
    .description('show what an account owns, what is held, and what it can spend')
    .action(async (account: string, _options, command) => {
      const { client, output } = open(command);
      const shown = await client.ask<AccountShape>('GET', `/accounts/${encodeURIComponent(account)}`);
      const { balanceUsd, heldUsd, availableUsd } = shown;
      await showOne(
        output,
        { balanceUsd, heldUsd, availableUsd },
        {
          'balance USD': (item) => item.balanceUsd,
          'held USD': (item) => item.heldUsd,
          'available USD': (item) => item.availableUsd,
        },
      );
    });
};

export default showBalance;
