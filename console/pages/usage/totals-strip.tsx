import { exactUsd, shortUsd } from '../../money';
import { showCount, showPercent, showShortCount } from '../../numbers';
import { Bone } from '../../parts/states';
import type { Percentiles, Totals } from '../../shapes';
import { showDuration } from '../../times';

/** The totals of all records that pass the filter. */
export function TotalsStrip({ totals, isStale }: { readonly totals: Totals | undefined; readonly isStale: boolean }) {
  const entries = [
    { name: 'Cost', value: totals && shortUsd(totals.costUsd), more: totals && `${exactUsd(totals.costUsd)}` },
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
      value: totals && took(totals.firstTokenMs.p50),
      more: totals && slower(totals.firstTokenMs),
    },
  ];
  return (
    <section class={isStale && totals !== undefined ? 'panel is-stale' : 'panel'} aria-label="Totals of the filter">
      <dl class="stats">
        {entries.map(({ name, value, more }) => (
          <div class="stat" key={name}>
            <dt>{name}</dt>
            <dd class="stat-value figure">{value ?? <Bone width="5ch" />}</dd>
            <dd class="stat-more figure">{more ?? <Bone width="11ch" />}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function failedOf({ calls, failed }: Totals): string {
  if (failed === 0) return 'none failed';
  return `${showCount(failed)} failed (${showPercent(failed / calls)})`;
}

function took(ms: number | null): string {
  return ms === null ? '–' : showDuration(ms);
}

function slower({ p50, p90, p99 }: Percentiles): string {
  return p50 === null ? 'not measured' : `p90 ${took(p90)} · p99 ${took(p99)}`;
}
