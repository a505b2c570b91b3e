import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { showList } from '../output';
import type { ListShape } from '../shapes';
import { USER_COLUMNS, type UserShape } from './columns';

const listUsers: Verb = (noun, open) => {
  withListOptions(noun.command('list <account>'))
    .description('list the users of an account, newest first')
    .action(async (account: string, { limit, cursor }: ListOptions, command) => {
      const { client, output } = open(command);
      const path = withQuery(`/accounts/${encodeURIComponent(account)}/users`, { limit, cursor });
      const answer = await client.ask<ListShape<UserShape>>('GET', path);
      await showList(output, answer, USER_COLUMNS);
      noteMore(output, answer);
    });
};

export default listUsers;
