import type { Verb } from '../command';
import { showOne } from '../output';
import { USER_COLUMNS, type UserShape } from './columns';
import { choosePassword, type PasswordOptions, withPasswordOption } from './password-option';

const setPassword: Verb = (noun, open) => {
  withPasswordOption(noun.command('password <user>'))
    .description('set a new password and end the sessions of a user; a generated password is shown only once')
    .action(async (user: string, options: PasswordOptions, command) => {
      const { client, output } = open(command);
      const { password, isNew } = await choosePassword(options, output);
      const changed = await client.ask<UserShape>('PATCH', `/users/${encodeURIComponent(user)}`, { password });
      if (!isNew) return showOne(output, changed, USER_COLUMNS);
      await showOne(output, { ...changed, password }, { ...USER_COLUMNS, password: (item) => item.password });
      output.note('Pass the password on now: it cannot be shown again.');
    });
};

export default setPassword;
