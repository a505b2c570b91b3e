import type { Verb } from '../command';
import { showOne } from '../output';
import { KEY_COLUMNS, type KeyShape } from '../shapes';
import { type LimitOptions, limitFields, limitOptions } from './limits';

interface Options extends LimitOptions {
  readonly limit?: string;
  readonly models?: readonly string[];
  readonly markup?: string;
  readonly debug?: boolean;
}

const createKey: Verb = (noun, open) => {
  const verb = noun
    .command('create <account> <name>')
    .description('create an API key; it is shown this once')
    .option('--limit <usd>', 'the most this key may spend')
    .option('--models <names...>', 'the only models this key may call')
    .option('--markup <markup>', "what it pays in place of its account's markup")
    .option('--debug', 'it may see how its calls are routed');
  limitOptions(verb).action(
    async (account: string, name: string, { limit, models, markup, debug, ...limits }: Options, command) => {
      const { client, output } = open(command);
      const wanted = {
        name,
        ...(limit === undefined ? {} : { balanceLimit: limit }),
        ...(models === undefined ? {} : { allowedModels: models }),
        ...(markup === undefined ? {} : { markup }),
        ...(debug === true ? { debug } : {}),
        ...limitFields(limits),
      };
      const path = `/accounts/${encodeURIComponent(account)}/keys`;
      const made = await client.ask<KeyShape & { readonly key: string }>('POST', path, wanted);
      await showOne(output, made, { ...KEY_COLUMNS, key: (item) => item.key });
      output.note('Keep the key now: it cannot be shown again.');
    },
  );
};

export default createKey;
