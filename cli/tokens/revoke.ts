import type { Verb } from '../command';
import { showOne } from '../output';
import { TOKEN_COLUMNS, type TokenShape } from './columns';

const revokeToken: Verb = (noun, open) => {
  noun
    .command('revoke <token>')
    .description('revoke a token by its id; no node accepts it any more')
    .action(async (token: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/tokens/${encodeURIComponent(token)}`;
      await showOne(output, await client.ask<TokenShape>('DELETE', path), TOKEN_COLUMNS);
    });
};

export default revokeToken;
