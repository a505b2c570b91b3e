import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { showList } from '../output';
import type { ListShape } from '../shapes';
import { TOKEN_COLUMNS, type TokenShape } from './columns';

const listTokens: Verb = (noun, open) => {
  withListOptions(noun.command('list'))
    .description('list the tokens of operators, newest first')
    .action(async ({ limit, cursor }: ListOptions, command) => {
      const { client, output } = open(command);
      const answer = await client.ask<ListShape<TokenShape>>('GET', withQuery('/tokens', { limit, cursor }));
      await showList(output, answer, TOKEN_COLUMNS);
      noteMore(output, answer);
    });
};

export default listTokens;
