import { newId } from '../../../core/base/ids';
import type { BillLine, Operation, Period, Sandbox, SandboxEvent, Segment } from './sandbox';
import { LIFECYCLE_VERBS, phaseOf } from './states';

/** A sandbox with its open operation, segment (a time at one price), billing periods and bill lines. The lifecycle functions decide from it. */
export interface Aggregate {
  readonly sandbox: Sandbox;
  /** The lifecycle operation that has not ended. */
  readonly operation: Operation | undefined;
  readonly segment: Segment | undefined;
  /** The billing period with the status OPEN. */
  readonly period: Period | undefined;
  /** The billing periods with the status SETTLING, oldest first. */
  readonly settling: readonly Period[];
  /** The bill lines of the OPEN and SETTLING billing periods. */
  readonly lines: readonly BillLine[];
  /** Whether a caller waits for a command in the sandbox. */
  readonly isBusy: boolean;
}

/**
 * The changes of one transaction, written only if the sandbox has not changed since it was read. Each row is complete: it is inserted, or
 * replaces the row with its id. An event increases the state's version. `sandbox-store.ts` has the order of the writes.
 */
export interface Change {
  readonly set: Partial<Sandbox>;
  readonly event?: Pick<SandboxEvent, 'type' | 'status' | 'source'> & {
    readonly message?: string;
    readonly operationId?: string;
  };
  readonly operations?: readonly Operation[];
  readonly segments?: readonly Segment[];
  readonly dropPeriods?: readonly string[];
  readonly periods?: readonly Period[];
  readonly dropLines?: readonly Pick<BillLine, 'periodId' | 'segmentId'>[];
  readonly lines?: readonly BillLine[];
}

/** Returns the aggregate (a sandbox with its operation, segment and billing) after a change, and the row of the change's event. */
export function applyChange(
  before: Aggregate,
  change: Change,
  nowMs: number,
): { readonly after: Aggregate; readonly event: SandboxEvent | undefined } {
  const { sandbox } = before;
  const step = change.event === undefined ? 0 : 1;
  const next: Sandbox = {
    ...sandbox,
    ...change.set,
    revision: sandbox.revision + 1,
    stateVersion: sandbox.stateVersion + step,
    eventSequence: sandbox.eventSequence + step,
  };
  const periods = replace(
    [...(before.period === undefined ? [] : [before.period]), ...before.settling],
    change.periods ?? [],
    ({ id }) => id,
  ).filter(({ id }) => change.dropPeriods?.includes(id) !== true);
  const unsettled = new Set(periods.filter(({ status }) => status !== 'SETTLED').map(({ id }) => id));
  const dropped = new Set(change.dropLines?.map(lineKey));
  const after: Aggregate = {
    ...before,
    sandbox: next,
    operation: replace(
      before.operation === undefined ? [] : [before.operation],
      change.operations ?? [],
      ({ id }) => id,
    ).find(isOpenLifecycle),
    segment: replace(before.segment === undefined ? [] : [before.segment], change.segments ?? [], ({ id }) => id).find(
      ({ endsAtMs }) => endsAtMs === null,
    ),
    period: periods.find(({ status }) => status === 'OPEN'),
    settling: periods.filter(({ status }) => status === 'SETTLING').sort((one, other) => one.sequence - other.sequence),
    lines: replace(before.lines, change.lines ?? [], lineKey).filter(
      (line) => unsettled.has(line.periodId) && !dropped.has(lineKey(line)),
    ),
  };
  return { after, event: change.event === undefined ? undefined : eventOf(sandbox, next, change.event, nowMs) };
}

function eventOf(before: Sandbox, after: Sandbox, event: NonNullable<Change['event']>, nowMs: number): SandboxEvent {
  return {
    id: newId(),
    sandboxId: after.id,
    sequence: after.eventSequence,
    type: event.type,
    status: event.status,
    previousState: before.stateVersion === 0 ? null : before.observedState,
    currentState: after.observedState,
    lifecyclePhase: phaseOf(after),
    stateVersion: after.stateVersion,
    operationId: event.operationId ?? null,
    source: event.source,
    message: event.message ?? null,
    createdAtMs: nowMs,
  };
}

function isOpenLifecycle({ type, status }: Operation): boolean {
  return (LIFECYCLE_VERBS as readonly string[]).includes(type) && (status === 'PENDING' || status === 'RUNNING');
}

function lineKey({ periodId, segmentId }: Pick<BillLine, 'periodId' | 'segmentId'>): string {
  return `${periodId} ${segmentId}`;
}

function replace<T>(there: readonly T[], written: readonly T[], keyOf: (row: T) => string): T[] {
  return [...new Map([...there, ...written].map((row) => [keyOf(row), row])).values()];
}
