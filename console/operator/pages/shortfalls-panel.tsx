import { exactUsd } from '../../money';
import { Pager, usePages } from '../../parts/pager';
import { Failed } from '../../parts/states';
import { type Column, Table } from '../../parts/table';
import { useResource } from '../../resource';
import { hrefOf } from '../../router';
import type { List } from '../../shapes';
import { showMoment, showWhole } from '../../times';
import type { Shortfall } from '../shapes';

const PATH = '/admin/v1/ledger/shortfalls?limit=20';

/** Charges that collected less than the cost. The platform pays the rest. */
export function ShortfallsPanel() {
  const pages = usePages(PATH);
  const path = pages.cursor === undefined ? PATH : `${PATH}&cursor=${encodeURIComponent(pages.cursor)}`;
  const { data, failure, isLoading, reload } = useResource<List<Shortfall>>(path);
  const nextCursor = data?.nextCursor ?? null;
  return (
    <section class="panel" aria-labelledby="shortfalls-title">
      <header class="panel-head">
        <h2 id="shortfalls-title">
          Shortfalls <span class="faint">charges below what was due</span>
        </h2>
      </header>
      {failure !== undefined && <Failed failure={failure} onRetry={reload} />}
      <Table
        label="Shortfalls"
        caption="Shortfalls, newest first"
        columns={COLUMNS}
        rows={data?.items}
        keyOf={({ rid }) => rid}
        isStale={isLoading}
        none="Every charge was complete."
      />
      <Pager
        page={pages.number}
        onNewer={pages.number > 1 ? pages.newer : undefined}
        onOlder={nextCursor === null ? undefined : () => pages.older(nextCursor)}
      />
    </section>
  );
}

const COLUMNS: readonly Column<Shortfall>[] = [
  {
    title: 'Time',
    look: 'figure small',
    cell: ({ createdAt }) => (
      <time dateTime={createdAt} title={showWhole(createdAt)}>
        {showMoment(createdAt)}
      </time>
    ),
  },
  {
    title: 'Account',
    cell: ({ accountId }) => (
      <a class="mono" href={hrefOf(`/accounts/${accountId}`)}>
        {accountId.slice(0, 8)}
      </a>
    ),
  },
  { title: 'Due', isNumber: true, room: 'from-m', cell: ({ dueUsd }) => exactUsd(dueUsd) },
  { title: 'Charged', isNumber: true, room: 'from-m', cell: ({ chargedUsd }) => exactUsd(chargedUsd) },
  { title: 'Short', isNumber: true, cell: ({ shortfallUsd }) => exactUsd(shortfallUsd) },
];
