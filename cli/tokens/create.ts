import { ROLES } from '../../core/operators/roles';
import type { Answers } from '../../shapes/answers';
import type { Verb } from '../command';
import { showOne } from '../output';
import { EXPIRY, toExpiry } from '../time';
import { TOKEN_COLUMNS } from './columns';

const createToken: Verb = (noun, open) => {
  const roles = Object.entries(ROLES).map(([role, may]) => `${role} (${may})`);
  noun
    .command('create <name>')
    .description('create a token for an operator; it is shown only once')
    .requiredOption('--role <role>', `each includes the rights of those before it: ${roles.join(', ')}`)
    .requiredOption('--expires <when>', EXPIRY)
    .action(async (name: string, { role, expires }: { role: string; expires: string }, command) => {
      const { client, output } = open(command);
      const wanted = { name, role, expiresAt: toExpiry(expires) };
      const made = await client.ask<Answers['POST /admin/v1/tokens']>('POST', '/tokens', wanted);
      await showOne(output, made, { ...TOKEN_COLUMNS, token: (item) => item.token });
      output.note('Store the token now: it cannot be shown again.');
    });
};

export default createToken;
