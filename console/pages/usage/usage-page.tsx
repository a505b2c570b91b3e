import { useEffect, useMemo, useState } from 'preact/hooks';
import { apiUrl, withQuery } from '../../api';
import { exactUsd, shortUsd } from '../../money';
import { showCount, showPercent, showShortCount } from '../../numbers';
import { Icon } from '../../parts/icon';
import { Page, Panel, type Stat, Stats } from '../../parts/page';
import { Pager, usePages } from '../../parts/pager';
import { Empty } from '../../parts/states';
import { useResource } from '../../resource';
import { changeQuery, hrefOf, place } from '../../router';
import type { List, Percentiles, Totals, UsageRecord } from '../../shapes';
import { recall, store } from '../../storage';
import { showMaybeDuration } from '../../times';
import { FILTERS, FilterBar, isNarrowed, readFilter, toQuery } from './filter-bar';
import { GroupsTable, groupedBy } from './groups';
import { RecordSheet } from './record-sheet';
import { COLUMNS, ColumnsMenu, RecordsTable, USUAL_COLUMNS } from './records';
import { UsageChart } from './usage-chart';

const PAGE_ROWS = 50;
const EVERY_MS = 1_000;
/** The shortest time between two reads of totals and chart, in ms. A read for every new record would cost too much, because each read sums all records. */
const SUMS_EVERY_MS = 4_000;

const COLUMNS_NAME = 'tollgate-usage-columns';

export function UsagePage() {
  const { query } = place.value;
  // The parameters of the page's address that select records. Other parameters concern the chart and the opened record, and select none.
  const asked = ['range', 'from', 'to', ...FILTERS].map((name) => query.get(name)).join('\n');
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new filter only when the selection changes
  const { filter, wanted } = useMemo(() => {
    const read = readFilter(query);
    return { filter: read, wanted: toQuery(read, Date.now()) };
  }, [asked]);
  const pages = usePages(withQuery('usage', { ...wanted, limit: PAGE_ROWS }));
  const [isLive, setLive] = useState(true);
  const canBeLive = filter.range.preset !== undefined && pages.isFirst;
  const records = useResource<List<UsageRecord>>(pages.path, {
    everyMs: isLive && canBeLive ? EVERY_MS : undefined,
  });
  const round = useSlowed(records.version, SUMS_EVERY_MS);
  const totals = useResource<Totals>(withQuery('usage/totals', { ...wanted, by: groupedBy().value }), { round });
  const [columns, setColumns] = useState(recallColumns);
  const chooseColumns = (chosen: readonly string[]) => {
    setColumns(chosen);
    store(COLUMNS_NAME, chosen.join());
  };
  const opened = query.get('record') ?? undefined;
  const actions = (
    <>
      <button
        type="button"
        class="button live"
        aria-pressed={isLive && canBeLive}
        disabled={!canBeLive}
        title={canBeLive ? 'New records appear automatically' : 'Only the first page of a range that ends now is live'}
        onClick={() => setLive(!isLive)}
      >
        <span class="dot" aria-hidden="true" /> Live
      </button>
      <a class="button" href={apiUrl(withQuery('usage.csv', wanted))} download="usage.csv">
        <Icon name="download" /> CSV
      </a>
    </>
  );
  const failure = records.failure ?? totals.failure;
  return (
    <Page
      title="Usage Records"
      actions={actions}
      tools={<FilterBar filter={filter} wanted={wanted} />}
      from={{ failure }}
    >
      <Panel label="Totals of the filter" look={totals.isLoading && totals.data !== undefined ? 'is-stale' : undefined}>
        <Stats of={statsOf(totals.data)} />
      </Panel>
      <UsageChart wanted={wanted} round={round} />
      <GroupsTable totals={totals} />
      <Panel title="Records" actions={<ColumnsMenu chosen={columns} onChange={chooseColumns} />}>
        <RecordsTable
          list={records}
          columns={COLUMNS.filter(({ id }) => columns.includes(id))}
          opened={opened}
          isLive={isLive && canBeLive}
          empty={<NoRecords isFiltered={isNarrowed(filter)} />}
        />
      </Panel>
      <Pager {...pages.pagerOf(records.data)} />
      {opened !== undefined && (
        <RecordSheet requestId={opened} onClose={() => changeQuery({ record: undefined }, { replace: true })} />
      )}
    </Page>
  );
}

/** Returns the main numbers of all usage records that match the filter. */
function statsOf(totals: Totals | undefined): readonly Stat[] {
  const slower = ({ p50, p90, p99 }: Percentiles) =>
    p50 === null ? 'not measured' : `p90 ${showMaybeDuration(p90)} · p99 ${showMaybeDuration(p99)}`;
  return [
    { name: 'Cost', value: totals && shortUsd(totals.costUsd), more: totals && exactUsd(totals.costUsd) },
    { name: 'Calls', value: totals && showCount(totals.calls), more: totals && failedOf(totals) },
    {
      name: 'Input tokens',
      value: totals && showShortCount(totals.inputTokens),
      more: totals && `${showShortCount(totals.cacheReadTokens)} more from cache`,
    },
    {
      name: 'Output tokens',
      value: totals && showShortCount(totals.outputTokens),
      more: totals && `${showShortCount(totals.totalTokens)} in total`,
    },
    {
      name: 'First token',
      value: totals && showMaybeDuration(totals.firstTokenMs.p50),
      more: totals && slower(totals.firstTokenMs),
    },
  ];
}

function failedOf({ calls, failed }: Totals): string {
  if (failed === 0) return 'none failed';
  return `${showCount(failed)} failed (${showPercent(failed / calls)})`;
}

function recallColumns(): readonly string[] {
  const kept = recall(COLUMNS_NAME)
    ?.split(',')
    .filter((id) => COLUMNS.some((each) => each.id === id));
  return kept === undefined || kept.length === 0 ? USUAL_COLUMNS : kept;
}

/** Returns `value`, but changes the returned number at most once in `everyMs`. The first change is immediate. */
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
    <Empty icon="search" title="No matching records" text="Remove a filter, or choose a longer range.">
      <a class="button" href={hrefOf('/usage')}>
        Clear the filters
      </a>
    </Empty>
  ) : (
    <Empty
      icon="usage"
      title="No calls in this range"
      text={
        <>
          A call appears here a moment after it has ended. The <a href={hrefOf('/')}>overview</a> has an example call to
          copy.
        </>
      }
    />
  );
}
