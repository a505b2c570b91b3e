import type { Verb } from '../command';
import { showOne } from '../output';
import { USER_COLUMNS, type UserShape } from './columns';

const unbindUser: Verb = (noun, open) => {
  noun
    .command('unbind <user>')
    .description('end the sessions of a user and let another identity of the provider with the same address sign in')
    .action(async (user: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/users/${encodeURIComponent(user)}/identity`;
      await showOne(output, await client.ask<UserShape>('DELETE', path), USER_COLUMNS);
    });
};

export default unbindUser;
