import type { Answers } from '../../shapes/answers';
import type { Verb } from '../command';
import { showOne } from '../output';

type LinkShape = Answers['POST /admin/v1/users/{userId}/sign-in-link'];

const makeLink: Verb = (noun, open) => {
  noun
    .command('link <user>')
    .description('create a link that signs a user in to the console once, within an hour')
    .action(async (user: string, _options: object, command) => {
      const { client, output } = open(command);
      const link = await client.ask<LinkShape>('POST', `/users/${encodeURIComponent(user)}/sign-in-link`, {});
      await showOne(output, link, { link: ({ url, path }) => url ?? path, expires: ({ expiresAt }) => expiresAt });
      if (link.url === null)
        output.note('PUBLIC_URL is not set, so the link is a path: put the address of the public listener before it.');
    });
};

export default makeLink;
