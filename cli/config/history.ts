import type { Answers } from '../../shapes/answers';
import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { type Columns, showList } from '../output';
import type { ListShape } from '../shapes';

type RevisionShape = Answers['GET /admin/v1/config/revisions']['items'][number];

const COLUMNS: Columns<RevisionShape> = {
  number: ({ number }) => number,
  revision: ({ revision }) => revision,
  time: ({ createdAt }) => createdAt,
  who: ({ actor }) => actor,
  'brings back': ({ restores }) => restores,
  note: ({ note }) => note,
};

const configHistory: Verb = (noun, open) => {
  withListOptions(noun.command('history'))
    .description('list the applied configurations, newest first')
    .action(async ({ limit, cursor }: ListOptions, command) => {
      const { client, output } = open(command);
      const path = withQuery('/config/revisions', { limit, cursor });
      const answer = await client.ask<ListShape<RevisionShape>>('GET', path);
      await showList(output, answer, COLUMNS);
      noteMore(output, answer);
    });
};

export default configHistory;
