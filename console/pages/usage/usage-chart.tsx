import { useState } from 'preact/hooks';
import { refetch, withQuery } from '../../api';
import { addUsd, exactUsd, shortUsd, toHeight } from '../../money';
import { plural, showCount } from '../../numbers';
import { axisCount, axisUsd, Chart, ChartBone, Legend } from '../../parts/chart';
import { Panel } from '../../parts/page';
import { Failed } from '../../parts/states';
import { type Column, Table } from '../../parts/table';
import { chosenIn, QueryChoice } from '../../parts/toolbar';
import { useResource } from '../../resource';
import type { Series } from '../../shapes';
import { showClock, showDay, showMaybeDuration, showStart, TIME_ZONE } from '../../times';
import { GroupPicker, groupedBy } from './groups';

const SHOWS = [
  { value: 'cost', text: 'Cost' },
  { value: 'calls', text: 'Calls' },
  { value: 'latency', text: 'First token' },
] as const;

const PERCENTILES = ['p50', 'p90', 'p99'] as const;
const HEIGHT = 220;

interface Props {
  readonly wanted: Readonly<Record<string, string | undefined>>;
  readonly round: number;
}

export function UsageChart({ wanted, round }: Props) {
  const show = chosenIn('show', SHOWS);
  const by = groupedBy().value;
  const series = useResource<Series>(withQuery('usage/series', { ...wanted, by, timeZone: TIME_ZONE }), { round });
  const { data, isLoading } = series;
  return (
    <Panel label="Over time">
      <header class="panel-head row">
        <QueryChoice label="What the chart shows" name="show" options={SHOWS} replace />
        <span class="grow" />
        <GroupPicker />
      </header>
      {series.failure !== undefined ? (
        <Failed failure={series.failure} onRetry={refetch} />
      ) : data === undefined ? (
        <ChartBone height={HEIGHT} />
      ) : (
        <div class={isLoading ? 'is-stale' : ''}>
          {show === 'latency' ? <Latency data={data} /> : <Amounts data={data} show={show} />}
        </div>
      )}
    </Panel>
  );
}

function namesOf({ starts, interval }: Series): readonly string[] {
  return starts.map((start) => showStart(start, interval));
}

/** Returns the labels of the axis: clock times within one day, otherwise the beginning of each day. */
function ticksOf({ starts, interval, from, to }: Series): readonly string[] {
  const isOneDay = Date.parse(to) - Date.parse(from) <= 26 * 3_600_000;
  if (interval === 'day' || interval === 'month') return starts.map((start) => showStart(start, interval));
  if (isOneDay) return starts.map((start) => showClock(start));
  const days = starts.map((start) => showDay(start));
  return days.map((day, index) => (day === days[index - 1] ? '' : day));
}

function Amounts({ data, show }: { readonly data: Series; readonly show: 'cost' | 'calls' }) {
  const { groups } = data;
  const names = namesOf(data);
  const format = (usd: string, calls: number) => (show === 'cost' ? exactUsd(usd) : plural(calls, 'call'));
  const cell = (group: number, point: number) =>
    format(groups[group]?.costUsd[point] ?? '0', groups[group]?.calls[point] ?? 0);
  const sumAt = (point: number) =>
    format(
      addUsd(groups.map(({ costUsd }) => costUsd[point] ?? '0')),
      groups.reduce((sum, { calls }) => sum + (calls[point] ?? 0), 0),
    );
  const whole = format(
    addUsd(groups.map(({ totalCostUsd }) => totalCostUsd)),
    groups.reduce((sum, { totalCalls }) => sum + totalCalls, 0),
  );
  return (
    <>
      <Chart
        label={`${show === 'cost' ? 'Cost' : 'Calls'} over time: ${whole} in all`}
        names={names}
        ticks={ticksOf(data)}
        series={groups.map(({ name, calls, costUsd }) => ({
          name,
          values: show === 'cost' ? costUsd.map(toHeight) : calls,
        }))}
        kind="stack"
        height={HEIGHT}
        format={cell}
        formatSum={sumAt}
        axis={show === 'cost' ? axisUsd : axisCount}
      />
      <Legend
        items={groups.map(({ name, totalCostUsd, totalCalls }) => ({
          name,
          value: show === 'cost' ? shortUsd(totalCostUsd) : showCount(totalCalls),
        }))}
      />
      <Figures names={names} columns={groups.map(({ name }) => name)} cell={cell} />
    </>
  );
}

function Latency({ data }: { readonly data: Series }) {
  const names = namesOf(data);
  const show = (percentile: number, point: number) =>
    showMaybeDuration(data.firstTokenMs[PERCENTILES[percentile] ?? 'p50'][point] ?? null);
  return (
    <>
      <Chart
        label="Time to the first token: 50, 90 and 99 percent of calls were at most this slow"
        names={names}
        ticks={ticksOf(data)}
        series={PERCENTILES.map((name) => ({ name, values: data.firstTokenMs[name] }))}
        kind="lines"
        height={HEIGHT}
        format={show}
        axis={(ms) => (ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`)}
      />
      <Legend items={PERCENTILES.map((name) => ({ name }))} />
      <Figures names={names} columns={PERCENTILES} cell={show} />
    </>
  );
}

interface FiguresProps {
  readonly names: readonly string[];
  readonly columns: readonly string[];
  readonly cell: (column: number, point: number) => string;
}

/** The chart as a table, for users who prefer numbers. The page builds it only when opened, because it can be long. */
function Figures({ names, columns, cell }: FiguresProps) {
  const [isOpen, setOpen] = useState(false);
  const from: Column<number> = { title: 'From', cell: (point) => names[point] };
  const values = columns.map(
    (title, column): Column<number> => ({ title, isNumber: true, cell: (point) => cell(column, point) }),
  );
  return (
    <details class="figures" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show as a table</summary>
      {isOpen && (
        <Table
          label="The chart as a table"
          caption="The chart as a table"
          columns={[from, ...values]}
          rows={names.map((_, point) => point)}
          keyOf={String}
        />
      )}
    </details>
  );
}
