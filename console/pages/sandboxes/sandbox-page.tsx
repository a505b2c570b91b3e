import { useState } from 'preact/hooks';
import { exactUsd } from '../../money';
import { CopyButton } from '../../parts/copy-button';
import { Fact } from '../../parts/fact';
import { Icon } from '../../parts/icon';
import { Bone, Empty, Failed } from '../../parts/states';
import { useResource } from '../../resource';
import { hrefOf } from '../../router';
import type { SandboxRecord } from '../../shapes';
import { showAgo, showDuration, showWhole } from '../../times';
import { BillPicture } from './bill-picture';
import { PeriodsTable, SegmentsTable } from './bill-tables';
import { Events, Operations } from './history';
import { sizeOf } from './sandboxes-page';
import { isFinal, StateBadge, toWords } from './states';
import { TerminateDialog } from './terminate-dialog';
import { useWholeRecord } from './whole-record';

const EVERY_MS = 2_000;

export function SandboxPage({ id }: { readonly id: string }) {
  const [isOver, setOver] = useState(false);
  const path = `sandboxes/${encodeURIComponent(id)}`;
  const fetched = useResource<SandboxRecord>(path, { everyMs: isOver ? undefined : EVERY_MS });
  const [isAsking, setAsking] = useState(false);
  const { data, failure } = fetched;
  if (data !== undefined && isFinal(data) !== isOver) setOver(isFinal(data));
  if (failure?.status === 404) {
    return (
      <div class="page">
        <Empty icon="sandboxes" title="Sandbox not found">
          <p class="quiet">Check the id. The sandbox may belong to another account.</p>
          <a class="button" href={hrefOf('/sandboxes')}>
            All sandboxes
          </a>
        </Empty>
      </div>
    );
  }
  return (
    <div class="page">
      <nav class="back" aria-label="Back">
        <a href={hrefOf('/sandboxes')}>
          <Icon name="left" /> Sandboxes
        </a>
      </nav>
      <header class="page-head">
        <h1>{data?.offeringName ?? <Bone width="10ch" />}</h1>
        {data !== undefined && <StateBadge state={data.lifecyclePhase} />}
        <span class="grow" />
        {data !== undefined && !isFinal(data) && (
          <button
            type="button"
            class="button danger"
            disabled={data.desiredState === 'TERMINATED'}
            onClick={() => setAsking(true)}
          >
            {data.desiredState === 'TERMINATED' ? 'Terminating …' : 'Terminate'}
          </button>
        )}
      </header>
      <p class="sub-head copied">
        <code class="faint">{id}</code>
        <CopyButton text={id} label="Copy the sandbox's id" />
      </p>
      {failure !== undefined && <Failed failure={failure} onRetry={fetched.reload} />}
      {data?.failure && (
        <p class="note bad">
          <strong>{data.failure.code}</strong> {data.failure.message}
        </p>
      )}
      <Stats record={data} />
      {data !== undefined && <Inside record={data} />}
      {isAsking && data !== undefined && (
        <TerminateDialog
          sandbox={data}
          onClose={() => setAsking(false)}
          onDone={() => {
            setAsking(false);
            fetched.reload();
          }}
        />
      )}
    </div>
  );
}

function Stats({ record }: { readonly record: SandboxRecord | undefined }) {
  const lived =
    record &&
    (record.terminatedAt === null ? Date.now() : Date.parse(record.terminatedAt)) - Date.parse(record.createdAt);
  const stats = [
    { name: 'Cost', value: record && exactUsd(record.totalCost), more: record && 'of settled periods' },
    {
      name: 'Rate',
      value: record && exactUsd(rateOf(record)),
      more:
        record && (isFinal(record) ? 'it has ended' : `per hour while ${toWords(record.observedState).toLowerCase()}`),
    },
    {
      name: 'Lifetime',
      value: lived === undefined ? undefined : showDuration(lived),
      more: record && `created ${showAgo(record.createdAt)}`,
    },
    {
      name: record !== undefined && isFinal(record) ? 'Ended' : 'Paid until',
      value: record && whenOf(record.terminatedAt ?? record.reservedUntil),
      more: record && (isFinal(record) ? toWords(record.observedState) : 'renewed before that'),
    },
  ];
  return (
    <section class="panel" aria-label="Summary">
      <dl class="stats">
        {stats.map(({ name, value, more }) => (
          <div class="stat" key={name}>
            <dt>{name}</dt>
            <dd class="stat-value figure">{value ?? <Bone width="5ch" />}</dd>
            <dd class="stat-more figure">{more ?? <Bone width="12ch" />}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function whenOf(time: string | null): string {
  return time === null ? '–' : showAgo(time);
}

/** Returns the hourly rate of the sandbox's state; 0 if the rate is unknown or the sandbox has ended. */
function rateOf({ observedState, offering }: SandboxRecord): string {
  const rates: Readonly<Record<string, string>> = offering.billing.estimatedHourlyUsdByState;
  return rates[observedState] ?? '0';
}

function Inside({ record }: { readonly record: SandboxRecord }) {
  const { whole, isPart, showAll, failure } = useWholeRecord(record);
  return (
    <>
      <section class="panel" aria-labelledby="bill-title">
        <header class="panel-head">
          <h2 id="bill-title">States and bill</h2>
          <span class="grow" />
          {isPart && (
            <button type="button" class="button" onClick={showAll}>
              Show all
            </button>
          )}
        </header>
        {isPart && <p class="panel-foot faint small">The newest 20 of each are shown.</p>}
        {failure !== undefined && <Failed failure={failure} onRetry={showAll} />}
        <BillPicture record={whole} />
      </section>
      <div class="halves">
        <SegmentsTable segments={whole.usageSegments} />
        <PeriodsTable periods={whole.billingPeriods} totalCost={record.totalCost} isWhole={!isPart} />
      </div>
      <div class="halves">
        <Events events={whole.events} />
        <Operations operations={whole.operations} />
      </div>
      <Facts record={record} />
    </>
  );
}

function Facts({ record }: { readonly record: SandboxRecord }) {
  const { policy, offering, metadata } = record;
  const facts: readonly (readonly [string, string])[] = [
    ['Size', sizeOf(record)],
    ['Offering', `${offering.name}, ${offering.region}`],
    ['Isolation', offering.isolation],
    ['Created', showWhole(record.createdAt)],
    ['Idempotency key', record.idempotencyKey],
    ['Resumes on access', policy.resumeOnAccess ? 'yes' : 'no'],
    ['Idle timeout', policy.idleTimeoutSeconds === null ? 'no limit' : showDuration(policy.idleTimeoutSeconds * 1_000)],
    [
      'Maximum lifetime',
      policy.maxLifetimeSeconds === null ? 'no limit' : showDuration(policy.maxLifetimeSeconds * 1_000),
    ],
    ['Maximum cost', policy.maxTotalCostUsd === null ? 'no limit' : exactUsd(policy.maxTotalCostUsd)],
    ['When funds run out', policy.onFundsExhausted === 'suspend' ? 'suspended' : 'terminated'],
    ...Object.entries(metadata).map(
      ([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
    ),
  ];
  return (
    <section class="panel" aria-labelledby="facts-title">
      <header class="panel-head">
        <h2 id="facts-title">Facts</h2>
      </header>
      <dl class="facts in-columns">
        {facts.map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
    </section>
  );
}
