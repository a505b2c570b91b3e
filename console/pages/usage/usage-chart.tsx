import { useState } from 'preact/hooks';
import { addUsd, exactUsd, shortUsd, toHeight } from '../../money';
import { plural, showCount, showShortCount } from '../../numbers';
import { Chart, Legend } from '../../parts/chart';
import { Segmented } from '../../parts/segmented';
import { Failed } from '../../parts/states';
import { TableFrame } from '../../parts/table';
import { useResource } from '../../resource';
import { changeQuery, place } from '../../router';
import type { Series } from '../../shapes';
import { showClock, showDay, showDuration, showStart, TIME_ZONE } from '../../times';
import { axisUsd } from '../overview/spend-chart';
import { pathOf } from './filter';

const SHOWS = [
  { value: 'cost', text: 'Cost' },
  { value: 'calls', text: 'Calls' },
  { value: 'latency', text: 'First token' },
] as const;

const GROUPINGS = [
  { value: 'model', text: 'By model' },
  { value: 'key', text: 'By key' },
  { value: 'upstream', text: 'By upstream' },
] as const;

const PERCENTILES = ['p50', 'p90', 'p99'] as const;
const HEIGHT = 220;

interface Props {
  readonly wanted: Readonly<Record<string, string | undefined>>;
  readonly round: number;
}

export function UsageChart({ wanted, round }: Props) {
  const { query } = place.value;
  const show = SHOWS.find(({ value }) => value === query.get('show'))?.value ?? 'cost';
  const by = GROUPINGS.find(({ value }) => value === query.get('by'))?.value ?? 'model';
  const path = pathOf('/series', { ...wanted, by, timeZone: TIME_ZONE });
  const series = useResource<Series>(path, { round });
  const { data, failure, isLoading } = series;
  return (
    <section class="panel" aria-labelledby="chart-title">
      <header class="panel-head">
        <h2 id="chart-title" class="unseen">
          Over time
        </h2>
        <Segmented
          label="What the chart shows"
          value={show}
          options={SHOWS}
          onChange={(value) => changeQuery({ show: value === 'cost' ? undefined : value }, { replace: true })}
        />
        <span class="grow" />
        {show !== 'latency' && (
          <Segmented
            label="Group the chart"
            value={by}
            options={GROUPINGS}
            onChange={(value) => changeQuery({ by: value === 'model' ? undefined : value }, { replace: true })}
          />
        )}
      </header>
      {failure !== undefined ? (
        <Failed failure={failure} onRetry={series.reload} />
      ) : data === undefined ? (
        <div class="chart-bone" style={{ height: `${HEIGHT}px` }} />
      ) : (
        <div class={isLoading ? 'is-stale' : ''}>
          {show === 'latency' ? <Latency data={data} /> : <Amounts data={data} show={show} />}
        </div>
      )}
    </section>
  );
}

function namesOf({ starts, interval }: Series): readonly string[] {
  return starts.map((start) => showStart(start, interval));
}

/** Returns the ticks of the axis: clock times within one day, else the beginning of each day. */
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
        format={(group, point) => format(groups[group]?.costUsd[point] ?? '0', groups[group]?.calls[point] ?? 0)}
        formatSum={sumAt}
        axis={show === 'cost' ? axisUsd : showWhole}
      />
      <Legend
        items={groups.map(({ name, totalCostUsd, totalCalls }) => ({
          name,
          value: show === 'cost' ? shortUsd(totalCostUsd) : showCount(totalCalls),
        }))}
      />
      <Figures
        names={names}
        columns={groups.map(({ name }) => name)}
        cell={(group, point) => format(groups[group]?.costUsd[point] ?? '0', groups[group]?.calls[point] ?? 0)}
      />
    </>
  );
}

function Latency({ data }: { readonly data: Series }) {
  const names = namesOf(data);
  const show = (percentile: number, point: number) => {
    const ms = data.firstTokenMs[PERCENTILES[percentile] ?? 'p50'][point] ?? null;
    return ms === null ? '–' : showDuration(ms);
  };
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

function showWhole(value: number): string {
  return Number.isInteger(value) ? showShortCount(value) : '';
}

interface FiguresProps {
  readonly names: readonly string[];
  readonly columns: readonly string[];
  readonly cell: (column: number, point: number) => string;
}

/** The chart as a table, for users who prefer to read. It is built only when opened, because it can be long. */
function Figures({ names, columns, cell }: FiguresProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="figures" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show as a table</summary>
      {isOpen && (
        <TableFrame label="The chart as a table">
          <table>
            <caption class="unseen">The chart as a table</caption>
            <thead>
              <tr>
                <th scope="col">From</th>
                {columns.map((name, column) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: two keys may have the same name
                  <th scope="col" class="number" key={column}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {names.map((name, point) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a repeated hour has the same name
                <tr key={point}>
                  <th scope="row">{name}</th>
                  {columns.map((_, column) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: two keys may have the same name
                    <td class="number" key={column}>
                      {cell(column, point)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </TableFrame>
      )}
    </details>
  );
}
