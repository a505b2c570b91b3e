import type { Answers } from '../../shapes/answers';
import type { Verb } from '../command';
import { showOne } from '../output';
import { KEY_COLUMNS } from '../shapes';
import { EXPIRY, toExpiry } from '../time';
import { limitFields, limitOptions } from './limits';

interface Options {
  readonly limit?: string;
  readonly models?: readonly string[];
  readonly markup?: string;
  readonly debug?: boolean;
  readonly expires?: string;
  readonly addresses?: readonly string[];
}

const createKey: Verb = (noun, open) => {
  const verb = noun
    .command('create <account> <name>')
    .description('create an API key; it is shown only once')
    .option('--limit <usd>', 'the spending limit of the key')
    .option('--models <names...>', 'the only models this key may call')
    .option('--markup <markup>', "its own markup, instead of the account's")
    .option('--debug', 'allow it to request the reasons of routing decisions')
    .option('--expires <when>', EXPIRY)
    .option('--addresses <ranges...>', 'allow it only from these addresses, such as 203.0.113.0/24 or 2001:db8::/32');
  limitOptions(verb).action(
    async (
      account: string,
      name: string,
      { limit, models, markup, debug, expires, addresses, ...limits }: Options,
      command,
    ) => {
      const { client, output } = open(command);
      const wanted = {
        name,
        ...(limit === undefined ? {} : { balanceLimit: limit }),
        ...(models === undefined ? {} : { allowedModels: models }),
        ...(markup === undefined ? {} : { markup }),
        ...(debug === true ? { debug } : {}),
        ...expiryField(expires),
        ...(addresses === undefined ? {} : { allowedAddresses: addresses }),
        ...limitFields(limits),
      };
      const path = `/accounts/${encodeURIComponent(account)}/keys`;
      const made = await client.ask<Answers['POST /admin/v1/accounts/{accountId}/keys']>('POST', path, wanted);
      await showOne(output, made, { ...KEY_COLUMNS, key: (item) => item.key });
      output.note('Store the key now: it cannot be shown again.');
    },
  );
};

/** Returns the member of the request. Without the option a key never expires. */
function expiryField(expires = 'never'): object {
  const expiresAt = toExpiry(expires);
  return expiresAt === null ? {} : { expiresAt };
}

export default createKey;
