import { useEffect, useState } from 'preact/hooks';
import { ask, type Failure, withQuery } from '../../api';
import { exactUsd } from '../../money';
import { Button } from '../../parts/button';
import { decide } from '../../parts/dialog';
import { Page, Panel, type Stat, Stats } from '../../parts/page';
import { Bone, Empty, Failed } from '../../parts/states';
import { Copied, Fact } from '../../parts/values';
import { toFailure, useResource } from '../../resource';
import { hrefOf } from '../../router';
import type { SandboxRecord } from '../../shapes';
import { showAgo, showDuration, showWhole } from '../../times';
import { BillPicture } from './bill-picture';
import { PeriodsTable, SegmentsTable } from './bill-tables';
import { Events, Operations } from './history';
import { isFinal, livedMs, StateBadge, sizeOf, toWords } from './states';

const EVERY_MS = 2_000;

export function SandboxPage({ id }: { readonly id: string }) {
  const [isOver, setOver] = useState(false);
  const path = `sandboxes/${encodeURIComponent(id)}`;
  const fetched = useResource<SandboxRecord>(path, { everyMs: isOver ? undefined : EVERY_MS });
  const { data, failure } = fetched;
  if (data !== undefined && isFinal(data) !== isOver) setOver(isFinal(data));
  if (failure?.status === 404) {
    return (
      <div class="page">
        <Empty
          icon="sandboxes"
          title="Sandbox not found"
          text="Check the id. The sandbox may belong to another account."
        >
          <a class="button" href={hrefOf('/sandboxes')}>
            All sandboxes
          </a>
        </Empty>
      </div>
    );
  }
  const terminating = data?.desiredState === 'TERMINATED';
  return (
    <Page
      title={data?.offeringName ?? <Bone width="10ch" />}
      beside={data && <StateBadge state={data.lifecyclePhase} />}
      back={{ path: '/sandboxes', name: 'Sandboxes' }}
      actions={
        data !== undefined &&
        !isFinal(data) && (
          <Button look="danger" isDisabled={terminating} onClick={() => terminate(data)}>
            {terminating ? 'Terminating …' : 'Terminate'}
          </Button>
        )
      }
      tools={
        <p class="sub-head faint small">
          <Copied text={id} label="Copy the sandbox's id" />
        </p>
      }
      from={fetched}
    >
      {data?.failure && (
        <p class="note bad">
          <strong>{data.failure.code}</strong> {data.failure.message}
        </p>
      )}
      <Panel label="Summary">
        <Stats of={statsOf(data)} />
      </Panel>
      {data !== undefined && <Inside record={data} />}
    </Page>
  );
}

function terminate({ id, offeringName }: SandboxRecord): void {
  decide({
    title: 'Terminate the sandbox?',
    verb: 'Terminate',
    isDestructive: true,
    keep: 'Keep it',
    text: (
      <>
        <p>
          <strong>{offeringName}</strong> <code class="quiet">{id}</code>
        </p>
        <p class="quiet">
          Its files and processes are lost and cannot be restored. Billing stops when the supplier confirms the end. The
          rest of the hold is released.
        </p>
      </>
    ),
    act: () => ask(`sandboxes/${id}`, { method: 'DELETE' }),
    done: 'The sandbox is being terminated.',
  });
}

function statsOf(record: SandboxRecord | undefined): readonly Stat[] {
  const isOver = record !== undefined && isFinal(record);
  return [
    { name: 'Cost', value: record && exactUsd(record.totalCost), more: record && 'of settled periods' },
    {
      name: 'Rate',
      value: record && exactUsd(rateOf(record)),
      more: record && (isOver ? 'it has ended' : `per hour while ${toWords(record.observedState).toLowerCase()}`),
    },
    {
      name: 'Lifetime',
      value: record && showDuration(livedMs(record)),
      more: record && `created ${showAgo(record.createdAt)}`,
    },
    {
      name: isOver ? 'Ended' : 'Paid until',
      value: record && whenOf(record.terminatedAt ?? record.reservedUntil),
      more: record && (isOver ? toWords(record.observedState) : 'renewed before that'),
    },
  ];
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
      <Panel title="States and bill" actions={isPart && <Button onClick={showAll}>Show all</Button>}>
        {isPart && <p class="panel-foot faint small">The newest 20 of each are shown.</p>}
        {failure !== undefined && <Failed failure={failure} onRetry={showAll} />}
        <BillPicture record={whole} />
      </Panel>
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
  const limit = (seconds: number | null) => (seconds === null ? 'no limit' : showDuration(seconds * 1_000));
  const facts: readonly (readonly [string, string])[] = [
    ['Size', sizeOf(record)],
    ['Offering', `${offering.name}, ${offering.region}`],
    ['Isolation', offering.isolation],
    ['Created', showWhole(record.createdAt)],
    ['Idempotency key', record.idempotencyKey],
    ['Resumes on access', policy.resumeOnAccess ? 'yes' : 'no'],
    ['Idle timeout', limit(policy.idleTimeoutSeconds)],
    ['Maximum lifetime', limit(policy.maxLifetimeSeconds)],
    ['Maximum cost', policy.maxTotalCostUsd === null ? 'no limit' : exactUsd(policy.maxTotalCostUsd)],
    ['When funds run out', policy.onFundsExhausted === 'suspend' ? 'suspended' : 'terminated'],
    ...Object.entries(metadata).map(
      ([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const,
    ),
  ];
  return (
    <Panel title="Facts">
      <dl class="facts in-columns">
        {facts.map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
    </Panel>
  );
}

const LISTS = ['operations', 'events', 'usageSegments', 'billingPeriods'] as const;
type Lists = Pick<SandboxRecord, (typeof LISTS)[number]>;

const PAGE_ROWS = 100;

/** Returns the record with its whole history once the user requests it. The record itself has only the newest part; the sandbox's audit has all of it. */
function useWholeRecord(record: SandboxRecord) {
  const [isWanted, setWanted] = useState(false);
  const [lists, setLists] = useState<Lists>();
  const [failure, setFailure] = useState<Failure>();
  const isLonger = LISTS.some((kind) => record.auditCounts[kind] > record[kind].length);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the history changes with the state's version
  useEffect(() => {
    if (!isWanted) return;
    let isOld = false;
    setFailure(undefined);
    Promise.all(LISTS.map(async (kind) => [kind, await readAll(record, kind)] as const)).then(
      (read) => !isOld && setLists(Object.fromEntries(read) as unknown as Lists),
      (error: unknown) => !isOld && setFailure(toFailure(error)),
    );
    return () => {
      isOld = true;
    };
  }, [isWanted, record.id, record.stateVersion, record.auditCounts.billingPeriods]);

  const whole: Lists & Pick<SandboxRecord, 'createdAt' | 'observedState'> = { ...record, ...lists };
  return { whole, isPart: isLonger && lists === undefined, showAll: () => setWanted(true), failure };
}

async function readAll(record: SandboxRecord, kind: (typeof LISTS)[number]): Promise<unknown[]> {
  const items: unknown[] = [];
  for (let page = 1; ; page++) {
    const path = withQuery(`sandboxes/${record.id}/audit`, { kind, page, pageSize: PAGE_ROWS });
    const answer = await ask<{ items: unknown[]; total: number }>(path);
    items.push(...answer.items);
    if (answer.items.length === 0 || items.length >= answer.total) return items;
  }
}
