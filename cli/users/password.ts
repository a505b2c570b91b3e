import type { Verb } from '../command';
import { showOne } from '../output';
import { USER_COLUMNS, type UserShape } from './columns';
import { choosePassword, type PasswordOptions, withPasswordOption } from './password-option';

const setPassword: Verb = (noun, open) => {
  withPasswordOption(noun.command('password <user>'))
    .description('give a user a new password and end their sessions; one that is made is shown this once')
    .action(async (user: string, options: PasswordOptions, command) => {
      const { client, output } = open(command);
      const { password, isNew } = await choosePassword(options, output);
      const changed = await client.ask<UserShape>('PATCH', `/users/${encodeURIComponent(user)}`, { password });
      if (!isNew) return showOne(output, changed, USER_COLUMNS);
      await showOne(output, { ...changed, password }, { ...USER_COLUMNS, password: (item) => item.password });
      output.note('Hand the password over now: it cannot be shown again.');
    });
};

export default setPassword;
