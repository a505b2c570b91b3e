import type { Verb } from '../command';
import { showOne } from '../output';
import { USER_COLUMNS, type UserShape } from './columns';

const enableUser: Verb = (noun, open) => {
  noun
    .command('enable <user>')
    .description('enable a disabled user')
    .action(async (user: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/users/${encodeURIComponent(user)}`;
      await showOne(output, await client.ask<UserShape>('PATCH', path, { status: 'active' }), USER_COLUMNS);
    });
};

export default enableUser;
