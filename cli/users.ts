import { randomBytes } from 'node:crypto';
import type { Answers } from '../shapes/answers';
import { USER } from './columns';
import type { Verb } from './command';
import { showOne } from './output';

type UserShape = Answers['PATCH /admin/v1/users/{userId}'];

/**
 * Returns a verb that sets a user's password: one from standard input, or a generated one. A password is never an argument, because other
 * users of the machine and the shell's history would see it.
 */
function withPassword(usage: string, summary: string, method: string, pathOf: (id: string) => string): Verb {
  return (noun, open) => {
    noun
      .command(usage)
      .description(`${summary}; a generated password is shown only once`)
      .option('--password-stdin', 'read the password from standard input instead of generating one')
      .action(async (...given: unknown[]) => {
        const { client, output } = open(given.pop() as Parameters<typeof open>[0]);
        const { passwordStdin } = given.pop() as { readonly passwordStdin?: true };
        const [id = '', email] = given as string[];
        const password = passwordStdin
          ? (await output.read()).replace(/\r?\n$/, '')
          : randomBytes(18).toString('base64url');
        const user = await client.ask<UserShape>(method, pathOf(encodeURIComponent(id)), { email, password });
        if (passwordStdin) return showOne(output, user, USER);
        await showOne(output, { ...user, password }, { ...USER, password: (item) => item.password });
        output.note('Pass the password on now: it cannot be shown again.');
      });
  };
}

export const createUser = withPassword(
  'create <account> <email>',
  'create a user of the console',
  'POST',
  (account) => `/accounts/${account}/users`,
);
export const setPassword = withPassword(
  'password <user>',
  'set a new password and end the sessions of a user',
  'PATCH',
  (user) => `/users/${user}`,
);
