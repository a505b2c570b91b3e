import { useEffect, useState } from 'preact/hooks';
import { ask, type Failure, withQuery } from '../../api';
import { toFailure } from '../../resource';
import type { SandboxRecord } from '../../shapes';

const LISTS = ['operations', 'events', 'usageSegments', 'billingPeriods'] as const;
type Lists = Pick<SandboxRecord, (typeof LISTS)[number]>;

const PAGE_ROWS = 100;

/** Completes a record on request. A record has only the newest part of its history; the audit has all of it. */
export function useWholeRecord(record: SandboxRecord) {
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
