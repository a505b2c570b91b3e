import { addUsd, exactUsd, shortUsd, toHeight } from '../../money';
import { plural } from '../../numbers';
import { Chart, Legend } from '../../parts/chart';
import type { Day } from '../../shapes';
import { showCalendarDay } from '../../times';

const HEIGHT = 170;

/** The cost of each of the last thirty days. */
export function SpendChart({ days }: { readonly days: readonly Day[] | undefined }) {
  if (days === undefined) return <div class="chart-bone" style={{ height: `${HEIGHT}px` }} />;
  const names = days.map(({ day }) => showCalendarDay(day));
  const hasSandboxes = days.some(({ sandboxesUsd }) => toHeight(sandboxesUsd) > 0);
  const parts = [
    { name: 'Calls', amounts: days.map(({ callsUsd }) => callsUsd) },
    ...(hasSandboxes ? [{ name: 'Sandboxes', amounts: days.map(({ sandboxesUsd }) => sandboxesUsd) }] : []),
  ];
  const sums = days.map(({ callsUsd, sandboxesUsd }) => addUsd([callsUsd, sandboxesUsd]));
  const chart = (
    <Chart
      label={`Spend of the last ${days.length} days: ${exactUsd(addUsd(sums))} in all`}
      names={days.map(({ calls }, index) => `${names[index]} · ${plural(calls, 'call')}`)}
      ticks={names}
      series={parts.map(({ name, amounts }) => ({ name, values: amounts.map(toHeight) }))}
      kind="stack"
      height={HEIGHT}
      format={(part, point) => exactUsd(parts[part]?.amounts[point] ?? '0')}
      formatSum={(point) => exactUsd(sums[point] ?? '0')}
      axis={axisUsd}
    />
  );
  if (!hasSandboxes) return chart;
  return (
    <>
      {chart}
      <Legend items={parts.map(({ name, amounts }) => ({ name, value: shortUsd(addUsd(amounts)) }))} />
    </>
  );
}

/** Formats the round numbers of an axis. No bill depends on them. */
export function axisUsd(value: number): string {
  if (value === 0) return '$0';
  if (value >= 1_000) return `$${Number((value / 1_000).toPrecision(3))}k`;
  return `$${Number(value.toPrecision(3)).toFixed(value < 1 ? decimalsOf(value) : Number.isInteger(value) ? 0 : 2)}`;
}

function decimalsOf(value: number): number {
  return Math.min(8, Math.max(2, 1 - Math.floor(Math.log10(value))));
}
