import type { Answers } from '../../shapes/answers';
import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { type Columns, showList } from '../output';
import type { ListShape } from '../shapes';

type SandboxShape = Answers['GET /admin/v1/sandboxes']['items'][number];

const COLUMNS: Columns<SandboxShape> = {
  id: (row) => row.id,
  account: (row) => row.accountId,
  offering: (row) => row.offeringName,
  supplier: (row) => row.supplier,
  phase: (row) => row.lifecyclePhase,
  cost: (row) => row.totalCost,
  'paid until': (row) => row.reservedUntil,
  created: (row) => row.createdAt,
};

interface Options extends ListOptions {
  readonly account?: string;
  readonly state?: string;
}

const listSandboxes: Verb = (noun, open) => {
  withListOptions(noun.command('list'))
    .description('list sandboxes, newest first; active ones unless a state is asked for')
    .option('--account <id>', 'of this account')
    .option('--state <state>', 'in this state, such as RUNNING; ALL for every one')
    .action(async ({ account, state, limit, cursor }: Options, command) => {
      const { client, output } = open(command);
      const query = { account, state, limit, cursor };
      const answer = await client.ask<ListShape<SandboxShape>>('GET', withQuery('/sandboxes', query));
      await showList(output, answer, COLUMNS);
      noteMore(output, answer);
    });
};

export default listSandboxes;
