import type { Verb } from '../command';
import { showOne } from '../output';
import { USER_COLUMNS, type UserShape } from './columns';
import { choosePassword, type PasswordOptions, withPasswordOption } from './password-option';

const createUser: Verb = (noun, open) => {
  withPasswordOption(noun.command('create <account> <email>'))
    .description('create a user of the console; a generated password is shown only once')
    .action(async (account: string, email: string, options: PasswordOptions, command) => {
      const { client, output } = open(command);
      const { password, isNew } = await choosePassword(options, output);
      const path = `/accounts/${encodeURIComponent(account)}/users`;
      const made = await client.ask<UserShape>('POST', path, { email, password });
      if (!isNew) return showOne(output, made, USER_COLUMNS);
      await showOne(output, { ...made, password }, { ...USER_COLUMNS, password: (item) => item.password });
      output.note('Pass the password on now: it cannot be shown again.');
    });
};

export default createUser;
