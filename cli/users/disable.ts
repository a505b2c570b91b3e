import type { Verb } from '../command';
import { showOne } from '../output';
import { USER_COLUMNS, type UserShape } from './columns';

const disableUser: Verb = (noun, open) => {
  noun
    .command('disable <user>')
    .description('disable a user: end their sessions and refuse their sign-ins')
    .action(async (user: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/users/${encodeURIComponent(user)}`;
      await showOne(output, await client.ask<UserShape>('PATCH', path, { status: 'disabled' }), USER_COLUMNS);
    });
};

export default disableUser;
