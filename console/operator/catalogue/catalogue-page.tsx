import { plural } from '../../numbers';
import { Button } from '../../parts/button';
import { showDialog } from '../../parts/dialog';
import { Page } from '../../parts/page';
import { Pager, usePages } from '../../parts/pager';
import { Empty } from '../../parts/states';
import { type Column, TablePanel, timeColumn } from '../../parts/table';
import { Named } from '../../parts/values';
import { useResource } from '../../resource';
import { hrefOf } from '../../router';
import type { List } from '../../shapes';
import { mayChange } from '../session';
import type { ShownProposal } from '../shapes';
import { PROPOSALS, ProposalStatus, rowsIn } from './proposal';
import { ReadListDialog } from './read-list-dialog';

const EVERY_MS = 5_000;

export function CataloguePage() {
  const pages = usePages(`${PROPOSALS}?limit=25`);
  const proposals = useResource<List<ShownProposal>>(pages.path, { everyMs: EVERY_MS });
  const actions = mayChange() && (
    <Button look="primary" onClick={() => showDialog(<ReadListDialog />)}>
      Read a list
    </Button>
  );
  return (
    <Page title="Catalogue" actions={actions} from={proposals}>
      <TablePanel
        title="Proposals of prices"
        isWholePage
        caption="Proposals of prices, newest first"
        columns={COLUMNS}
        list={proposals}
        keyOf={({ id }) => id}
        empty={
          <Empty
            icon="catalogue"
            title="No proposals yet"
            text="Read a public list of prices. You see what differs from the configuration, and accept or refuse each price."
          />
        }
      />
      <Pager {...pages.pagerOf(proposals.data)} />
    </Page>
  );
}

const COLUMNS: readonly Column<ShownProposal>[] = [
  {
    title: 'List',
    cell: ({ id, source, format, rows }) => (
      <Named
        name={source === 'file' ? `A file of ${format}` : source}
        href={hrefOf(`/catalogue/${id}`)}
        sub={plural(rows.length, 'difference')}
      />
    ),
  },
  { title: 'Status', cell: (proposal) => <ProposalStatus {...proposal} /> },
  { title: 'To decide', isNumber: true, cell: (proposal) => rowsIn(proposal, 'proposed') },
  { title: 'Accepted', isNumber: true, room: 'from-m', cell: (proposal) => rowsIn(proposal, 'accepted') },
  { title: 'Stopped', isNumber: true, room: 'from-m', cell: (proposal) => rowsIn(proposal, 'stopped') },
  timeColumn('Holds from', ({ holdsFrom }) => holdsFrom, { room: 'from-m' }),
  timeColumn('Read', ({ createdAt }) => createdAt, { room: 'from-m' }),
];
