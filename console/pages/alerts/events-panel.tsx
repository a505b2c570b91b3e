import type { WithAccess } from '../../access';
import { withQuery } from '../../api';
import { Pager, usePages } from '../../parts/pager';
import { type Column, TablePanel, timeColumn } from '../../parts/table';
import { Badge } from '../../parts/values';
import { useResource } from '../../resource';
import type { AccountEvent, List } from '../../shapes';
import { showMoment } from '../../times';
import { describeEvent } from './events';

const EVERY_MS = 3_000;
const PAGE_ROWS = 20;

export function EventsPanel({ access }: WithAccess) {
  const pages = usePages(withQuery(access.list('events'), { order: 'newest', limit: PAGE_ROWS }));
  const events = useResource<List<AccountEvent>>(pages.path, { everyMs: EVERY_MS });
  return (
    <TablePanel
      title="Events"
      hint="of the last 30 days"
      caption="Events, newest first"
      look="events"
      columns={COLUMNS}
      list={events}
      keyOf={({ id }) => id}
      none="No event yet. An event tells that a budget reached a threshold, for example."
    >
      <Pager {...pages.pagerOf(events.data)} />
    </TablePanel>
  );
}

const COLUMNS: readonly Column<AccountEvent>[] = [
  timeColumn('Time', ({ timestamp }) => timestamp, { look: '', as: showMoment }),
  {
    title: 'Event',
    cell: (event) => {
      const { tone, text } = describeEvent(event);
      return <Badge tone={tone}>{text}</Badge>;
    },
  },
  { title: 'Type', room: 'from-m', look: 'mono quiet', cell: ({ type }) => type },
  { title: 'Number', room: 'from-l', isNumber: true, cell: ({ sequence }) => sequence },
];
