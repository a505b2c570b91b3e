import { useEffect, useMemo, useState } from 'preact/hooks';
import { apiUrl } from '../../api';
import { Icon } from '../../parts/icon';
import { Pager, usePages } from '../../parts/pager';
import { Empty, Failed } from '../../parts/states';
import { useResource } from '../../resource';
import { changeQuery, hrefOf, place } from '../../router';
import type { List, Totals, UsageRecord } from '../../shapes';
import { recall, store } from '../../storage';
import { COLUMNS, USUAL_COLUMNS } from './columns';
import { ColumnsMenu } from './columns-menu';
import { FILTERS, isNarrowed, pathOf, readFilter, toQuery } from './filter';
import { FilterBar } from './filter-bar';
import { RecordSheet } from './record-sheet';
import { RecordsTable } from './records-table';
import { TotalsStrip } from './totals-strip';
import { UsageChart } from './usage-chart';

const PAGE_ROWS = 50;
const EVERY_MS = 1_000;
/** The shortest time between two reads of totals and chart. A read for every new record would cost too much, because each counts all records. */
const SUMS_EVERY_MS = 4_000;

const COLUMNS_NAME = 'tollgate-usage-columns';

export function UsagePage() {
  const { query } = place.value;
  // The parts of the query that select records; those of the chart and the sheet do not.
  const asked = ['range', 'from', 'to', ...FILTERS].map((name) => query.get(name)).join('\n');
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new filter only when the selection changes
  const { filter, wanted } = useMemo(() => {
    const read = readFilter(query);
    return { filter: read, wanted: toQuery(read, Date.now()) };
  }, [asked]);
  const list = pathOf('', { ...wanted, limit: PAGE_ROWS });
  const pages = usePages(list);
  const [isLive, setLive] = useState(true);
  const canBeLive = filter.range.preset !== undefined && pages.number === 1;
  const records = useResource<List<UsageRecord>>(pathOf('', { ...wanted, limit: PAGE_ROWS, cursor: pages.cursor }), {
    everyMs: isLive && canBeLive ? EVERY_MS : undefined,
  });
  const round = useSlowed(records.version, SUMS_EVERY_MS);
  const totals = useResource<Totals>(pathOf('/totals', wanted), { round });
  const [columns, setColumns] = useState(recallColumns);
  const chooseColumns = (chosen: readonly string[]) => {
    setColumns(chosen);
    store(COLUMNS_NAME, chosen.join());
  };

  const { data } = records;
  const failure = records.failure ?? totals.failure;
  const reloadAll = () => {
    records.reload();
    totals.reload();
  };
  const nextCursor = data?.nextCursor ?? null;
  const opened = query.get('record') ?? undefined;
  return (
    <div class="page">
      <header class="page-head">
        <h1>Usage Records</h1>
        <span class="grow" />
        <button
          type="button"
          class="button live"
          aria-pressed={isLive && canBeLive}
          disabled={!canBeLive}
          title={
            canBeLive ? 'New records appear automatically' : 'Only the first page of a range that ends now is live'
          }
          onClick={() => setLive(!isLive)}
        >
          <span class="dot" aria-hidden="true" /> Live
        </button>
        <a class="button" href={apiUrl(pathOf('.csv', wanted))} download="usage.csv">
          <Icon name="download" /> CSV
        </a>
      </header>
      <FilterBar filter={filter} />
      {failure !== undefined && <Failed failure={failure} onRetry={reloadAll} />}
      <TotalsStrip totals={totals.data} isStale={totals.isLoading} />
      <UsageChart wanted={wanted} round={round} />
      <section class="panel" aria-labelledby="records-title">
        <header class="panel-head">
          <h2 id="records-title">Records</h2>
          <span class="grow" />
          <ColumnsMenu chosen={columns} onChange={chooseColumns} />
        </header>
        {data?.items.length === 0 && !records.isLoading ? (
          <NoRecords isFiltered={isNarrowed(filter)} />
        ) : (
          <RecordsTable
            records={data?.items}
            columns={COLUMNS.filter(({ id }) => columns.includes(id))}
            isStale={records.isLoading && data !== undefined}
            opened={opened}
            isLive={isLive && canBeLive}
          />
        )}
      </section>
      <Pager
        page={pages.number}
        onNewer={pages.number > 1 ? pages.newer : undefined}
        onOlder={nextCursor === null ? undefined : () => pages.older(nextCursor)}
      />
      {opened !== undefined && (
        <RecordSheet requestId={opened} onClose={() => changeQuery({ record: undefined }, { replace: true })} />
      )}
    </div>
  );
}

function recallColumns(): readonly string[] {
  const kept = recall(COLUMNS_NAME)
    ?.split(',')
    .filter((id) => COLUMNS.some((each) => each.id === id));
  return kept === undefined || kept.length === 0 ? USUAL_COLUMNS : kept;
}

/** Returns a number that follows `value` at once, but changes at most once in `everyMs`. */
function useSlowed(value: number, everyMs: number): number {
  const [slowed, setSlowed] = useState({ value, atMs: 0 });
  useEffect(() => {
    if (slowed.value === value) return;
    const wait = Math.max(0, slowed.atMs + everyMs - Date.now());
    const timer = setTimeout(() => setSlowed({ value, atMs: Date.now() }), wait);
    return () => clearTimeout(timer);
  }, [value, slowed, everyMs]);
  return slowed.value;
}

function NoRecords({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty icon="search" title="No matching records">
      <p class="quiet">Remove a filter, or choose a longer range.</p>
      <a class="button" href={hrefOf('/usage')}>
        Clear the filters
      </a>
    </Empty>
  ) : (
    <Empty icon="usage" title="No calls in this range">
      <p class="quiet">
        A call appears here a moment after it has ended. The <a href={hrefOf('/')}>overview</a> has an example call to
        copy.
      </p>
    </Empty>
  );
}
