import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { showList } from '../output';
import { ACCOUNT_COLUMNS, type AccountShape, type ListShape } from '../shapes';

const listAccounts: Verb = (noun, open) => {
  withListOptions(noun.command('list'))
    .description('list accounts, newest first')
    .action(async ({ limit, cursor }: ListOptions, command) => {
      const { client, output } = open(command);
      const answer = await client.ask<ListShape<AccountShape>>('GET', withQuery('/accounts', { limit, cursor }));
      await showList(output, answer, ACCOUNT_COLUMNS);
      noteMore(output, answer);
    });
};

export default listAccounts;
