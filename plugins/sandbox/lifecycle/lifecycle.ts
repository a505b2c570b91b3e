import { newId } from '../../../core/base/ids';
import { type BilledState, hourlyE8 } from '../offerings/offering';
import type { Found } from '../suppliers/supplier';
import type { Aggregate, Change } from './aggregate';
import { closeSegment, dueE8, endPeriod, newSegment, reachOf } from './billing';
import type { Operation, SandboxEvent, SandboxFailure } from './sandbox';
import type { Timings } from './settings';
import type { FinalState, LifecycleVerb, OperationStatus } from './states';

/** Functions that return each change of a sandbox's state as a value. `sandbox-store.ts` writes the changes. */

/** Returns true if the sandbox will end, whatever else is requested. */
export function mustEnd({ sandbox }: Aggregate): boolean {
  return sandbox.desiredState === 'TERMINATED' || sandbox.finalState !== null;
}

function closeOperation(
  operation: Operation | undefined,
  status: OperationStatus,
  nowMs: number,
  error: SandboxFailure | null = null,
): readonly Operation[] {
  return operation === undefined ? [] : [{ ...operation, status, endedAtMs: nowMs, error }];
}

/** Records the state that the supplier confirmed. `asked`: the gateway has just requested this state, so the change happened now. */
export function confirm(
  aggregate: Aggregate,
  state: BilledState,
  {
    inspection: { reference, incarnation },
    asked,
    nowMs,
    timings,
  }: { inspection: Found; asked: boolean; nowMs: number; timings: Timings },
): Change {
  const { sandbox, operation, segment, period } = aggregate;
  const seen = {
    supplierRef: reference,
    incarnation: incarnation === '' ? sandbox.incarnation : incarnation,
    confirmedAtMs: nowMs,
    lastConfirmedState: state,
    silentTries: 0,
    goneSinceMs: null,
    actionSentAtMs: null,
  };
  const isSame = sandbox.observedState === state && (segment !== undefined || state === 'PROVISIONING');
  if (isSame && (state !== 'PROVISIONING' || sandbox.supplierRef !== null)) return { set: seen };

  const isReached = sandbox.desiredState === state;
  // If the supplier was silent or the gateway did not request the change, its time is unknown. The old state then counts until the last confirmation.
  const changedAtMs = asked && sandbox.observedState !== 'UNKNOWN' ? nowMs : (sandbox.confirmedAtMs ?? nowMs);
  const continues = segment?.state === state;
  const closed = continues ? {} : closeSegment(aggregate, changedAtMs);
  const opened = continues ? undefined : newSegment(aggregate, state, nowMs);
  const dueNowE8 = dueE8(aggregate, nowMs);
  const reach =
    period === undefined || state === 'PROVISIONING'
      ? undefined
      : reachOf(period, dueNowE8, hourlyE8(sandbox.offering, state), nowMs, timings);
  const change = {
    segments: [...(closed.segments ?? []), ...(opened === undefined ? [] : [opened])],
    lines: closed.lines ?? [],
    ...(period === undefined || reach === undefined ? {} : { periods: [{ ...period, coversUntilMs: reach }] }),
  };
  const set = {
    ...seen,
    ...(opened === undefined ? {} : { segmentSequence: opened.sequence }),
    ...(reach === undefined ? {} : { reservedUntilMs: reach }),
  };
  if (sandbox.observedState === state) return { ...change, set };
  return {
    ...change,
    set: { ...set, observedState: state, attempts: 0, ...(isReached ? { desiredState: null } : {}) },
    operations: isReached ? closeOperation(operation, 'SUCCEEDED', nowMs) : [],
    event: {
      type: state,
      status: 'SUCCEEDED',
      source: 'supplier',
      ...(isReached && operation !== undefined ? { operationId: operation.id } : {}),
    },
  };
}

/**
 * Records that the supplier did not answer. After several failures over `silentAfterMs` the state becomes UNKNOWN, and billing
 * waits for a confirmation.
 */
export function silence({ sandbox }: Aggregate, nowMs: number, timings: Timings, message: string): Change {
  const silentTries = sandbox.silentTries + 1;
  const sinceMs = sandbox.confirmedAtMs ?? sandbox.acceptedAtMs ?? sandbox.createdAtMs;
  const tried = { silentTries, ...postponed(sandbox.attempts, nowMs) };
  if (sandbox.observedState === 'UNKNOWN' || silentTries < 3 || nowMs - sinceMs < timings.silentAfterMs) {
    return { set: tried };
  }
  return {
    set: { ...tried, observedState: 'UNKNOWN' },
    event: { type: 'UNKNOWN', status: 'FAILED', source: 'gateway', message },
  };
}

const MAX_PAUSE_MS = 60_000;

/** Returns when to try again: each failure doubles the pause. The current time serves as jitter, because it differs between sandboxes. */
export function postponed(attempts: number, nowMs: number): { attempts: number; nextAtMs: number } {
  const pauseMs = Math.min(MAX_PAUSE_MS, 1_000 * 2 ** attempts);
  const jitter = 0.75 + (nowMs % 101) / 404;
  return { attempts: Math.min(attempts + 1, 10), nextAtMs: nowMs + Math.round(pauseMs * jitter) };
}

/** Ends a sandbox that cannot continue. It counts as FAILED once the supplier has nothing of it any more. */
export function giveUp(failure: SandboxFailure, stoppedAtMs: number | null): Change {
  return {
    set: { finalState: 'FAILED', failure, stoppedAtMs, attempts: 0 },
    event: { type: failure.code, status: 'FAILED', source: 'supplier', message: failure.message },
  };
}

/** Records that the supplier has nothing of a sandbox any more. The state becomes final when the last billing period is settled. */
export function endInstance(
  aggregate: Aggregate,
  { finalState, failure, endedAtMs }: { finalState: FinalState; failure?: SandboxFailure; endedAtMs: number },
): Change {
  const { sandbox } = aggregate;
  return {
    ...endPeriod(aggregate, endedAtMs),
    set: { finalState, endedAtMs, failure: failure ?? sandbox.failure, goneSinceMs: null },
  };
}

/** Settles a billing period with the amount that the ledger charged. Once the last period of an ended sandbox is settled, its state is final. */
export function settlePeriod(
  aggregate: Aggregate,
  { chargedE8, shortfallE8 }: { chargedE8: bigint; shortfallE8: bigint },
  nowMs: number,
): Change {
  const { sandbox, settling, period, operation } = aggregate;
  const [first] = settling;
  if (first === undefined) throw new Error('the sandbox has no period that is being settled');
  const settled = { ...first, status: 'SETTLED' as const, amountE8: chargedE8, shortfallE8, settledAtMs: nowMs };
  const set = { totalCostE8: sandbox.totalCostE8 + chargedE8 };
  const { finalState } = sandbox;
  if (finalState === null || sandbox.endedAtMs === null || settling.length > 1 || period !== undefined) {
    return { set, periods: [settled] };
  }
  const isAsked = operation?.type === 'TERMINATE';
  return {
    set: {
      ...set,
      observedState: finalState,
      lastConfirmedState: finalState,
      desiredState: null,
      reservedUntilMs: null,
      ...(finalState === 'TERMINATED' ? { terminatedAtMs: nowMs } : {}),
    },
    periods: [settled],
    operations: closeOperation(operation, isAsked ? 'SUCCEEDED' : 'FAILED', nowMs, isAsked ? null : sandbox.failure),
    event: {
      type: finalState,
      status: finalState === 'TERMINATED' ? 'SUCCEEDED' : 'FAILED',
      source: 'supplier',
      ...(sandbox.failure === null ? {} : { message: sandbox.failure.message }),
      ...(operation === undefined ? {} : { operationId: operation.id }),
    },
  };
}

/** Records that the supplier refused to suspend or resume. The state stays as it is. */
export function refuseOperation({ operation }: Aggregate, failure: SandboxFailure, nowMs: number): Change {
  return {
    set: { desiredState: null, attempts: 0 },
    operations: closeOperation(operation, 'FAILED', nowMs, failure),
    event: {
      type: `${operation?.type ?? 'OPERATION'}_FAILED`,
      status: 'FAILED',
      source: 'supplier',
      message: failure.message,
      ...(operation === undefined ? {} : { operationId: operation.id }),
    },
  };
}

const DESIRED = { SUSPEND: 'SUSPENDED', RESUME: 'RUNNING', TERMINATE: 'TERMINATED' } as const;

/** Requests another state for a caller or a rule. A termination cancels every other request. */
export function request(
  { sandbox, operation }: Aggregate,
  verb: Exclude<LifecycleVerb, 'CREATE'>,
  {
    cause,
    source,
    idempotencyKey = null,
    nowMs,
  }: { cause: string; source: SandboxEvent['source']; idempotencyKey?: string | null; nowMs: number },
): Change & { readonly operations: readonly Operation[] } {
  const asked = newOperation(sandbox.id, verb, { cause, idempotencyKey, nowMs });
  return {
    set: { desiredState: DESIRED[verb], attempts: 0, nextAtMs: nowMs },
    operations: [...closeOperation(operation, 'CANCELLED', nowMs), asked],
    event: { type: `${verb}_REQUESTED`, status: 'PENDING', source, message: cause, operationId: asked.id },
  };
}

export function newOperation(
  sandboxId: string,
  type: LifecycleVerb,
  { cause, idempotencyKey, nowMs }: { cause: string; idempotencyKey: string | null; nowMs: number },
): Operation {
  return {
    id: newId(),
    sandboxId,
    type,
    status: 'RUNNING',
    cause,
    idempotencyKey,
    requestedAtMs: nowMs,
    startedAtMs: nowMs,
    endedAtMs: null,
    error: null,
    result: null,
    noop: false,
  };
}
