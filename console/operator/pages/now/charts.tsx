import { exactUsd } from '../../../money';
import { plural, showCount } from '../../../numbers';
import { Chart, Legend } from '../../../parts/chart';
import { showClock, showDuration } from '../../../times';
import type { Minute } from '../../shapes';

const HEIGHT = 170;

interface Props {
  readonly minutes: readonly Minute[] | undefined;
}

export function CallsChart({ minutes }: Props) {
  const answered = minutes?.map(({ calls, failed }) => calls - failed) ?? [];
  const failed = minutes?.map((each) => each.failed) ?? [];
  const parts = [answered, failed];
  return (
    <section class="panel" aria-labelledby="calls-title">
      <header class="panel-head">
        <h2 id="calls-title">
          Calls per minute <span class="faint">the last half hour</span>
        </h2>
      </header>
      {minutes === undefined ? (
        <div class="chart-bone" style={{ height: `${HEIGHT}px` }} />
      ) : (
        <>
          <Chart
            label={`Calls of the last ${minutes.length} minutes: ${plural(sumOf(answered), 'call')} answered, ${showCount(sumOf(failed))} failed`}
            names={minutes.map(({ start, costUsd }) => `${showClock(start)} · ${exactUsd(costUsd)}`)}
            ticks={minutes.map(({ start }) => showClock(start))}
            series={[
              { name: 'Answered', values: answered },
              { name: 'Failed', values: failed },
            ]}
            kind="stack"
            height={HEIGHT}
            format={(part, point) => showCount(parts[part]?.[point] ?? 0)}
            axis={wholeOnly}
          />
          <Legend
            items={[
              { name: 'Answered', value: showCount(sumOf(answered)) },
              { name: 'Failed', value: showCount(sumOf(failed)) },
            ]}
          />
        </>
      )}
    </section>
  );
}

export function SlowestChart({ minutes }: Props) {
  const values = minutes?.map(({ p99Ms }) => p99Ms) ?? [];
  return (
    <section class="panel" aria-labelledby="slowest-title">
      <header class="panel-head">
        <h2 id="slowest-title">
          p99 <span class="faint">99 of 100 answers are faster</span>
        </h2>
      </header>
      {minutes === undefined ? (
        <div class="chart-bone" style={{ height: `${HEIGHT}px` }} />
      ) : (
        <Chart
          label={`p99 of each of the last ${minutes.length} minutes`}
          names={minutes.map(({ start, calls }) => `${showClock(start)} · ${plural(calls, 'call')}`)}
          ticks={minutes.map(({ start }) => showClock(start))}
          series={[{ name: 'p99', values }]}
          kind="lines"
          height={HEIGHT}
          format={(_, point) => took(values[point] ?? null)}
          axis={(value) => showDuration(value)}
        />
      )}
    </section>
  );
}

function took(ms: number | null): string {
  return ms === null ? '–' : showDuration(ms);
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0);
}

function wholeOnly(value: number): string {
  return Number.isInteger(value) ? showCount(value) : '';
}
