import { exactUsd, shortUsd } from '../../../money';
import { plural, showCount, showPercent } from '../../../numbers';
import { Bone, Failed } from '../../../parts/states';
import { useResource } from '../../../resource';
import { showDuration } from '../../../times';
import type { Now } from '../../shapes';
import { Attention } from './attention';
import { CallsChart, SlowestChart } from './charts';

const EVERY_MS = 3_000;
const MINUTE_SECONDS = 60;

export function NowPage() {
  const now = useResource<Now>('/admin/v1/now', { everyMs: EVERY_MS });
  const { data, failure } = now;
  return (
    <div class="page">
      <header class="page-head">
        <h1>Now</h1>
        <span class="quiet small">the last 60 seconds of all nodes</span>
      </header>
      {failure !== undefined && <Failed failure={failure} onRetry={now.reload} />}
      <section class="panel" aria-label="The last sixty seconds">
        <dl class="stats">
          {metricsOf(data).map(({ name, value, more, isBad }) => (
            <div class="stat" key={name}>
              <dt>{name}</dt>
              <dd class={isBad === true ? 'stat-value figure is-bad' : 'stat-value figure'}>
                {value ?? <Bone width="5ch" />}
              </dd>
              <dd class="stat-more figure">{more ?? <Bone width="11ch" />}</dd>
            </div>
          ))}
        </dl>
      </section>
      <Attention />
      <div class="halves">
        <CallsChart minutes={data?.minutes} />
        <SlowestChart minutes={data?.minutes} />
      </div>
    </div>
  );
}

/** The bounds from which a number is coloured: one failed call in a hundred, an outbox entry of half a minute. */
const MANY_FAILED = 0.01;
const OLD_SECONDS = 30;

function metricsOf(now: Now | undefined) {
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
      value: lately && (lately.p99Ms === null ? '–' : showDuration(lately.p99Ms)),
      more: lately && '99 of 100 answers are faster',
    },
    {
      name: 'Cost per minute',
      value: lately && <span title={exactUsd(lately.costUsd)}>{shortUsd(lately.costUsd)}</span>,
      more: lately && 'charged to accounts',
    },
    {
      name: 'Held',
      value: now && (now.heldUsd === null ? '–' : <span title={exactUsd(now.heldUsd)}>{shortUsd(now.heldUsd)}</span>),
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
