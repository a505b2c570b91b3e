import { exactUsd } from '../money';
import { plural, showCount, showPercent } from '../numbers';
import { axisCount, Chart, ChartBone, Legend } from '../parts/chart';
import { Page, Panel, type Stat, Stats } from '../parts/page';
import { Amount } from '../parts/values';
import { useResource } from '../resource';
import { showClock, showDuration, showMaybeDuration } from '../times';
import { Attention } from './attention';
import type { Minute, Now } from './shapes';

const EVERY_MS = 3_000;
const MINUTE_SECONDS = 60;

export function NowPage() {
  const now = useResource<Now>('/admin/v1/now', { everyMs: EVERY_MS });
  const { data } = now;
  return (
    <Page title="Now" beside={<span class="quiet small">the last 60 seconds of all nodes</span>} from={now}>
      <Panel label="The last sixty seconds">
        <Stats of={statsOf(data)} />
      </Panel>
      <Attention />
      <div class="halves">
        <CallsChart minutes={data?.minutes} />
        <SlowestChart minutes={data?.minutes} />
      </div>
    </Page>
  );
}

/** The share of failed calls from which the page marks it as bad. The constant below is such a limit for the age of an outbox entry, in seconds. */
const MANY_FAILED = 0.01;
const OLD_SECONDS = 30;

function statsOf(now: Now | undefined): readonly Stat[] {
  const lately = now?.lately;
  const share = lately === undefined || lately.calls === 0 ? 0 : lately.failed / lately.calls;
  return [
    {
      name: 'Calls per second',
      value: lately && perSecond(lately.calls),
      more: lately && plural(lately.calls, 'call'),
    },
    {
      name: 'Failed',
      value: lately && showPercent(share),
      more: lately && (lately.failed === 0 ? 'no call failed' : plural(lately.failed, 'call')),
      isBad: share >= MANY_FAILED,
    },
    {
      name: 'p99',
      value: lately && showMaybeDuration(lately.p99Ms),
      more: lately && '99 of 100 answers are faster',
    },
    {
      name: 'Cost per minute',
      value: lately && <Amount usd={lately.costUsd} />,
      more: lately && 'charged to accounts',
    },
    {
      name: 'Held',
      value: now && <Amount usd={now.heldUsd} />,
      more: now && (now.heldUsd === null ? 'the ledger gives no sum' : 'for calls and sandboxes'),
    },
    {
      name: 'Outbox',
      value: now && (now.outbox.oldestSeconds === 0 ? 'Empty' : showDuration(now.outbox.oldestSeconds * 1_000)),
      more:
        now &&
        (now.outbox.oldestSeconds === 0
          ? 'Postgres has every entry'
          : `${showPercent(now.outbox.memoryShare)} of the memory`),
      isBad: (now?.outbox.oldestSeconds ?? 0) >= OLD_SECONDS,
    },
  ];
}

function perSecond(calls: number): string {
  const rate = calls / MINUTE_SECONDS;
  return rate >= 100 ? showCount(Math.round(rate)) : String(Number(rate.toPrecision(2)));
}

const HEIGHT = 170;

interface Props {
  readonly minutes: readonly Minute[] | undefined;
}

function CallsChart({ minutes }: Props) {
  return (
    <Panel title="Calls per minute" hint="the last half hour">
      {minutes === undefined ? <ChartBone height={HEIGHT} /> : <Calls minutes={minutes} />}
    </Panel>
  );
}

function Calls({ minutes }: { readonly minutes: readonly Minute[] }) {
  const parts = [
    { name: 'Answered', values: minutes.map(({ calls, failed }) => calls - failed) },
    { name: 'Failed', values: minutes.map(({ failed }) => failed) },
  ];
  const [answered = 0, failed = 0] = parts.map(({ values }) => values.reduce((sum, each) => sum + each, 0));
  return (
    <>
      <Chart
        label={`Calls of the last ${minutes.length} minutes: ${plural(answered, 'call')} answered, ${showCount(failed)} failed`}
        names={minutes.map(({ start, costUsd }) => `${showClock(start)} · ${exactUsd(costUsd)}`)}
        ticks={minutes.map(({ start }) => showClock(start))}
        series={parts}
        kind="stack"
        height={HEIGHT}
        format={(part, point) => showCount(parts[part]?.values[point] ?? 0)}
        axis={axisCount}
      />
      <Legend
        items={[
          { name: 'Answered', value: showCount(answered) },
          { name: 'Failed', value: showCount(failed) },
        ]}
      />
    </>
  );
}

function SlowestChart({ minutes }: Props) {
  const values = minutes?.map(({ p99Ms }) => p99Ms) ?? [];
  return (
    <Panel title="p99" hint="99 of 100 answers are faster">
      {minutes === undefined ? (
        <ChartBone height={HEIGHT} />
      ) : (
        <Chart
          label={`p99 of each of the last ${minutes.length} minutes`}
          names={minutes.map(({ start, calls }) => `${showClock(start)} · ${plural(calls, 'call')}`)}
          ticks={minutes.map(({ start }) => showClock(start))}
          series={[{ name: 'p99', values }]}
          kind="lines"
          height={HEIGHT}
          format={(_, point) => showMaybeDuration(values[point] ?? null)}
          axis={showDuration}
        />
      )}
    </Panel>
  );
}
