import { withQuery } from '../../api';
import { changeInPercent, exactUsd, shortUsd } from '../../money';
import { Bone, Failed } from '../../parts/states';
import { useResource } from '../../resource';
import { hrefOf } from '../../router';
import type { Overview } from '../../shapes';
import { TIME_ZONE } from '../../times';
import { CallIt } from './call-it';
import { Models } from './models';
import { SpendChart } from './spend-chart';
import { Upstreams } from './upstreams';

const EVERY_MS = 15_000;

export function OverviewPage() {
  const overview = useResource<Overview>(withQuery('overview', { timeZone: TIME_ZONE }), { everyMs: EVERY_MS });
  const { data, failure } = overview;
  return (
    <div class="page">
      <header class="page-head">
        <h1>Overview</h1>
      </header>
      {failure !== undefined && <Failed failure={failure} onRetry={overview.reload} />}
      <section class="panel" aria-labelledby="money-title">
        <h2 id="money-title" class="unseen">
          Money
        </h2>
        <dl class="stats">
          <div class="stat lead">
            <dt>Available</dt>
            <dd class="stat-value figure">{data === undefined ? <Bone width="6ch" /> : amount(data.availableUsd)}</dd>
            <dd class="stat-more figure">
              {data === undefined ? (
                <Bone width="18ch" />
              ) : data.availableUsd === null ? (
                'The ledger does not answer'
              ) : (
                <>
                  {amount(data.balanceUsd)} balance <span class="faint">−</span> {amount(data.heldUsd)} held
                </>
              )}
            </dd>
          </div>
          <Spent title="Today" now={data?.spend.todayUsd} before={data?.spend.yesterdayUsd} than="yesterday" isWhole />
          <Spent
            title="This month"
            now={data?.spend.monthUsd}
            before={data?.spend.lastMonthToThisDayUsd}
            than="last month by now"
          />
          <div class="stat">
            <dt>Last month</dt>
            <dd class="stat-value figure">
              {data === undefined ? <Bone width="5ch" /> : amount(data.spend.lastMonthUsd)}
            </dd>
            <dd class="stat-more">
              <a href={hrefOf('/usage?range=30d')}>Usage Records</a>
            </dd>
          </div>
        </dl>
        <SpendChart days={data?.spend.days} />
      </section>
      <CallIt catalog={data} />
      <Models models={data?.models} />
      <Upstreams upstreams={data?.upstreams} />
    </div>
  );
}

function amount(usd: string | null) {
  return usd === null ? '–' : <span title={exactUsd(usd)}>{shortUsd(usd)}</span>;
}

interface SpentProps {
  readonly title: string;
  readonly now: string | undefined;
  readonly before: string | undefined;
  readonly than: string;
  /** Whether `before` is a whole day and today is not over, so that a percentage would mislead. */
  readonly isWhole?: boolean;
}

function Spent({ title, now, before, than, isWhole = false }: SpentProps) {
  if (now === undefined || before === undefined) {
    return (
      <div class="stat">
        <dt>{title}</dt>
        <dd class="stat-value">
          <Bone width="5ch" />
        </dd>
        <dd class="stat-more">
          <Bone width="12ch" />
        </dd>
      </div>
    );
  }
  const change = isWhole ? undefined : changeInPercent(now, before);
  return (
    <div class="stat">
      <dt>{title}</dt>
      <dd class="stat-value figure">{amount(now)}</dd>
      <dd class="stat-more figure">
        {change === undefined ? (
          <>
            {amount(before)} {than}
          </>
        ) : (
          <>
            {Math.abs(change)} % {change >= 0 ? 'more' : 'less'} <span class="faint">than {than}</span>
          </>
        )}
      </dd>
    </div>
  );
}
