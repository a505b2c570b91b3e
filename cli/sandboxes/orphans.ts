import type { Answers } from '../../shapes/answers';
import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { type Columns, showList } from '../output';
import type { ListShape } from '../shapes';

type OrphanShape = Answers['GET /admin/v1/sandboxes/orphans']['items'][number];

const COLUMNS: Columns<OrphanShape> = {
  supplier: (row) => row.supplier,
  name: (row) => row.name,
  sandbox: (row) => row.sandboxId,
  reason: (row) => row.reason,
  'failed tries': (row) => String(row.attempts),
  found: (row) => row.foundAt,
  removed: (row) => row.removedAt,
};

const listOrphans: Verb = (noun, open) => {
  withListOptions(noun.command('orphans'))
    .description('list instances at suppliers that belong to no sandbox, newest first')
    .action(async ({ limit, cursor }: ListOptions, command) => {
      const { client, output } = open(command);
      const answer = await client.ask<ListShape<OrphanShape>>(
        'GET',
        withQuery('/sandboxes/orphans', { limit, cursor }),
      );
      await showList(output, answer, COLUMNS);
      noteMore(output, answer);
    });
};

export default listOrphans;
