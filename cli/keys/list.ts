import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { showList } from '../output';
import { KEY_COLUMNS, type KeyShape, type ListShape } from '../shapes';

const listKeys: Verb = (noun, open) => {
  withListOptions(noun.command('list <account>'))
    .description('list the keys of an account, newest first')
    .action(async (account: string, { limit, cursor }: ListOptions, command) => {
      const { client, output } = open(command);
      const path = withQuery(`/accounts/${encodeURIComponent(account)}/keys`, { limit, cursor });
      const answer = await client.ask<ListShape<KeyShape>>('GET', path);
      await showList(output, answer, KEY_COLUMNS);
      noteMore(output, answer);
    });
};

export default listKeys;
