import type { Verb } from '../command';
import { showOne } from '../output';
import { KEY_COLUMNS, type KeyShape } from '../shapes';

const limitKey: Verb = (noun, open) => {
  noun
    .command('limit <key> <usd>')
    .description('set the spending limit of a key; "none" removes it')
    .action(async (key: string, usd: string, _options, command) => {
      const { client, output } = open(command);
      const change = { balanceLimit: usd === 'none' ? null : usd };
      await showOne(
        output,
        await client.ask<KeyShape>('PATCH', `/keys/${encodeURIComponent(key)}`, change),
        KEY_COLUMNS,
      );
    });
};

export default limitKey;
