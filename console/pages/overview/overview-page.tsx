import { withQuery } from '../../api';
import { addUsd, changeInPercent, exactUsd, shortUsd, toHeight } from '../../money';
import { plural } from '../../numbers';
import { axisUsd, Chart, ChartBone, Legend } from '../../parts/chart';
import { Page, Panel, type Stat, Stats } from '../../parts/page';
import { Amount } from '../../parts/values';
import { useResource } from '../../resource';
import { hrefOf } from '../../router';
import type { Day, Overview } from '../../shapes';
import { showCalendarDay, TIME_ZONE } from '../../times';
import { CallIt } from './call-it';
import { Models, Upstreams } from './catalog';

const EVERY_MS = 15_000;

export function OverviewPage() {
  const overview = useResource<Overview>(withQuery('overview', { timeZone: TIME_ZONE }), { everyMs: EVERY_MS });
  const { data } = overview;
  return (
    <Page title="Overview" from={overview}>
      <Panel label="Money">
        <Stats of={statsOf(data)} />
        <SpendChart days={data?.spend.days} />
      </Panel>
      <CallIt catalog={data} />
      <Models models={data?.models} />
      <Upstreams upstreams={data?.upstreams} />
    </Page>
  );
}

function statsOf(data: Overview | undefined): readonly Stat[] {
  const { spend } = data ?? {};
  return [
    {
      name: 'Available',
      look: 'lead',
      value: data && <Amount usd={data.availableUsd} />,
      more:
        data &&
        (data.availableUsd === null ? (
          'The ledger does not answer'
        ) : (
          <>
            <Amount usd={data.balanceUsd} /> balance <span class="faint">−</span> <Amount usd={data.heldUsd} /> held
          </>
        )),
    },
    {
      name: 'Today',
      value: spend && <Amount usd={spend.todayUsd} />,
      // Shows no percentage, because comparing today so far with all of yesterday would mislead.
      more: spend && (
        <>
          <Amount usd={spend.yesterdayUsd} /> yesterday
        </>
      ),
    },
    {
      name: 'This month',
      value: spend && <Amount usd={spend.monthUsd} />,
      more: spend && <Compared now={spend.monthUsd} before={spend.lastMonthToThisDayUsd} />,
    },
    {
      name: 'Last month',
      value: spend && <Amount usd={spend.lastMonthUsd} />,
      more: <a href={hrefOf('/usage?range=30d')}>Usage Records</a>,
    },
  ];
}

function Compared({ now, before }: { readonly now: string; readonly before: string }) {
  const change = changeInPercent(now, before);
  return change === undefined ? (
    <>
      <Amount usd={before} /> last month by now
    </>
  ) : (
    <>
      {Math.abs(change)} % {change >= 0 ? 'more' : 'less'} <span class="faint">than last month by now</span>
    </>
  );
}

const HEIGHT = 170;

/** The cost of each of the last thirty days. */
function SpendChart({ days }: { readonly days: readonly Day[] | undefined }) {
  if (days === undefined) return <ChartBone height={HEIGHT} />;
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
