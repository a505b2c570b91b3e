import { parseUsd } from '../../../core/base/money';
import { costE8 } from '../offerings/offering';
import type { Found, Inspection } from '../suppliers/supplier';
import type { Aggregate, Change } from './aggregate';
import { coverFor, currentHourlyE8, dueE8, rollPeriod } from './billing';
import { confirm, endInstance, giveUp, mustEnd, postponed, refuseOperation, request, silence } from './lifecycle';
import type { Period } from './sandbox';
import type { Timings } from './settings';
import { isFinal } from './states';

/** The calls that the gateway sends to a supplier. */
export type SupplierVerb = 'create' | 'inspect' | 'suspend' | 'resume' | 'terminate';

/** What the gateway learned from one call to the supplier. `asked`: this was the gateway's first try of this call, and it succeeded. */
export type Observation =
  | { readonly seen: 'instance'; readonly inspection: Inspection; readonly asked: boolean }
  | { readonly seen: 'silence'; readonly verb: SupplierVerb; readonly message: string }
  | {
      readonly seen: 'refusal';
      readonly verb: SupplierVerb;
      readonly message: string;
      readonly isTemporary: boolean;
      /** Whether the supplier itself reported that it created nothing. false: the supplier may not even have read the request. */
      readonly isRejected: boolean;
    };

/** What a worker learned during its visit of a sandbox, beyond the sandbox's row in the database. */
export interface Seen {
  readonly observation?: Observation;
  /** Which side (ledger or supplier) failed to extend the paid time. Other work continues. */
  readonly moneyWaits?: 'ledger' | 'supplier';
  /** Whether the ledger refused to pay for the time ahead. */
  readonly refused?: boolean;
}

export type Action =
  | { readonly kind: SupplierVerb }
  | { readonly kind: 'renew'; readonly period: Period; readonly reservedE8: bigint; readonly coversUntilMs: number }
  | { readonly kind: 'settle'; readonly period: Period }
  | { readonly kind: 'record'; readonly change: Change };

/** Returns the actions for one sandbox, in order. Empty: nothing to do until `nextVisit`. A pure function. */
export function plan(aggregate: Aggregate, seen: Seen, nowMs: number, timings: Timings): readonly Action[] {
  const { sandbox, settling } = aggregate;
  if (isFinal(sandbox.observedState)) return [];
  const [first] = settling;
  if (first !== undefined && seen.moneyWaits !== 'ledger') return [{ kind: 'settle', period: first }];
  if (seen.observation !== undefined) return [record(absorb(aggregate, seen.observation, nowMs, timings))];
  if (sandbox.endedAtMs !== null) return [];
  if (sandbox.nextAtMs > nowMs) return [];
  if (mustEnd(aggregate)) return planEnd(aggregate, nowMs, timings);
  const byRule = planRules(aggregate, nowMs, timings);
  if (byRule !== undefined) return [record(byRule)];
  const money = seen.moneyWaits !== undefined ? undefined : planMoney(aggregate, nowMs, timings);
  if (money !== undefined && seen.refused !== true) return [money];
  const wayOut = seen.refused === true ? unpaid(aggregate, nowMs, timings) : undefined;
  if (wayOut !== undefined) return [record(wayOut)];
  return planSupplier(aggregate, nowMs, timings);
}

function record(change: Change): Action {
  return { kind: 'record', change };
}

/** Returns the change that records what a call to the supplier has shown. */
function absorb(aggregate: Aggregate, observation: Observation, nowMs: number, timings: Timings): Change {
  const { sandbox } = aggregate;
  if (observation.seen === 'silence') return silence(aggregate, nowMs, timings, observation.message);
  if (observation.seen === 'refusal') return absorbRefusal(aggregate, observation, nowMs);
  const { inspection, asked } = observation;
  if (inspection.kind === 'gone') return absorbAbsence(aggregate, inspection.endedAt?.getTime(), asked, nowMs, timings);
  const { reference, state } = inspection;
  const isOther = isAnother(aggregate, inspection);
  if (state === 'ended' || isOther) {
    const change = { confirmedAtMs: sandbox.confirmedAtMs ?? nowMs, supplierRef: sandbox.supplierRef ?? reference };
    const stoppedAtMs = sandbox.stoppedAtMs ?? within(sandbox.confirmedAtMs, inspection.endedAt?.getTime(), nowMs);
    if (mustEnd(aggregate)) {
      const later = sandbox.actionSentAtMs === null ? {} : postponed(sandbox.attempts, nowMs);
      return { set: { ...change, stoppedAtMs, ...later } };
    }
    const message = isOther ? 'The instance was replaced or restarted.' : 'The instance stopped by itself.';
    const lost = giveUp({ code: 'SUPPLIER_LOST', message }, stoppedAtMs);
    return { ...lost, set: { ...lost.set, ...change } };
  }
  const confirmed = confirm(aggregate, BILLED[state], { inspection, asked, nowMs, timings });
  // The instance is still there although it was ended, or not yet in the requested state: retry later.
  const isInVain = asked && state !== 'starting' && sandbox.desiredState !== BILLED[state];
  const isStillThere = mustEnd(aggregate) && sandbox.actionSentAtMs !== null;
  return sandbox.supplierRef !== null && (isStillThere || isInVain)
    ? { ...confirmed, set: { ...confirmed.set, ...postponed(sandbox.attempts, nowMs) } }
    : confirmed;
}

const BILLED = { starting: 'PROVISIONING', running: 'RUNNING', suspended: 'SUSPENDED' } as const;

/**
 * Returns true if the found instance is not the one that was confirmed last. It was replaced or started anew, so its memory is lost. Its
 * time since the last confirmation is unproven. One new start is allowed: the resumption from a suspension that preserves no memory.
 */
function isAnother({ sandbox, segment }: Aggregate, { reference, state, incarnation }: Found): boolean {
  if (sandbox.supplierRef === null || sandbox.incarnation === null) return false;
  if (sandbox.supplierRef.id !== reference.id) return true;
  const hasRun = segment?.state === 'RUNNING';
  if (state === 'starting') return hasRun;
  const keepsMemory = sandbox.offering.lifecycle.suspension.preserves === 'memory';
  const isSame = incarnation === '' || incarnation === sandbox.incarnation;
  return !isSame && (keepsMemory || (hasRun && state === 'running'));
}

function absorbRefusal(
  aggregate: Aggregate,
  { verb, message, isTemporary, isRejected }: Extract<Observation, { seen: 'refusal' }>,
  nowMs: number,
): Change {
  const { sandbox } = aggregate;
  const endedAtMs = sandbox.confirmedAtMs ?? nowMs;
  if (verb === 'create' && isRejected && mustEnd(aggregate))
    return endInstance(aggregate, { finalState: sandbox.finalState ?? 'TERMINATED', endedAtMs });
  if (verb === 'create' && !isTemporary) {
    return endInstance(aggregate, { finalState: 'FAILED', failure: { code: 'SUPPLIER_REJECTED', message }, endedAtMs });
  }
  if ((verb === 'suspend' || verb === 'resume') && !isTemporary) {
    return refuseOperation(aggregate, { code: 'SUPPLIER_ERROR', message }, nowMs);
  }
  return { set: postponed(sandbox.attempts, nowMs) };
}

/** Records the supplier's answer that the instance does not exist. If the gateway was not ending the sandbox, a second answer must confirm it. */
function absorbAbsence(
  aggregate: Aggregate,
  endedAtMs: number | undefined,
  asked: boolean,
  nowMs: number,
  { goneAfterMs }: Timings,
): Change {
  const { sandbox } = aggregate;
  const provenMs = within(sandbox.confirmedAtMs, endedAtMs, nowMs);
  if (mustEnd(aggregate)) {
    const stoppedMs = sandbox.stoppedAtMs ?? (asked && sandbox.observedState !== 'UNKNOWN' ? nowMs : provenMs);
    return endInstance(aggregate, { finalState: sandbox.finalState ?? 'TERMINATED', endedAtMs: stoppedMs });
  }
  if (sandbox.goneSinceMs === null)
    return { set: { goneSinceMs: nowMs, silentTries: 0, nextAtMs: nowMs + goneAfterMs } };
  if (nowMs < sandbox.goneSinceMs + goneAfterMs) return { set: { nextAtMs: sandbox.goneSinceMs + goneAfterMs } };
  const failure = { code: 'SUPPLIER_LOST', message: 'The supplier lost the instance without a request to end it.' };
  return endInstance(aggregate, { finalState: 'FAILED', failure, endedAtMs: provenMs });
}

/**
 * Returns the proven time of an instance's end: the supplier's time, limited to between the last confirmation and now. If the supplier
 * reports no time, it is the last confirmation.
 */
function within(confirmedAtMs: number | null, endedAtMs: number | undefined, nowMs: number): number {
  const confirmedMs = confirmedAtMs ?? nowMs;
  return endedAtMs === undefined ? confirmedMs : Math.min(nowMs, Math.max(confirmedMs, endedAtMs));
}

function planEnd(aggregate: Aggregate, nowMs: number, { observeMovingMs }: Timings): readonly Action[] {
  const { sandbox } = aggregate;
  // No instance can exist, because no `create` was sent to the supplier.
  if (sandbox.createSentAtMs === null) {
    return [record(endInstance(aggregate, { finalState: sandbox.finalState ?? 'TERMINATED', endedAtMs: nowMs }))];
  }
  // After a `create` without an answer, only another `create` shows whether the instance exists, because the supplier's list may lag.
  if (sandbox.supplierRef === null) return [{ kind: 'create' }];
  // Inspect the instance once more before ending it, because an instance that stopped by itself must not be billed until now.
  const isOld = nowMs - (sandbox.confirmedAtMs ?? nowMs) > observeMovingMs;
  const mayLook = sandbox.actionSentAtMs === null && sandbox.stoppedAtMs === null && sandbox.silentTries === 0;
  return [{ kind: isOld && mayLook ? 'inspect' : 'terminate' }];
}

/** Returns the change that a reached limit requires: provisioning time, lifetime, run time, cost or idle time. */
function planRules(aggregate: Aggregate, nowMs: number, timings: Timings): Change | undefined {
  const { sandbox, segment } = aggregate;
  const { policy, offering } = sandbox;
  if (sandbox.lastConfirmedState === null || sandbox.lastConfirmedState === 'PROVISIONING') {
    if (nowMs < provisionBy(aggregate)) return undefined;
    return giveUp({ code: 'PROVISIONING_TIMEOUT', message: 'The supplier did not start the instance in time.' }, null);
  }
  if (sandbox.observedState === 'UNKNOWN') return undefined;
  const end = (cause: string) => request(aggregate, 'TERMINATE', { cause, source: 'policy', nowMs });
  if (nowMs >= lifetimeEnd(aggregate)) return end('MAX_LIFETIME');
  if (nowMs >= runtimeEnd(aggregate)) return end('MAX_CONTINUOUS_RUNTIME');
  if (policy.maxTotalCostUsd !== null) {
    const ending = costE8(segment?.hourlyE8 ?? 0n, timings.endingReserveMs);
    const soFar = sandbox.totalCostE8 + dueE8(aggregate, nowMs);
    if (soFar + ending >= parseUsd(policy.maxTotalCostUsd)) return end('MAX_TOTAL_COST');
  }
  if (sandbox.desiredState !== null || nowMs < idleEnd(aggregate, nowMs)) return undefined;
  if (!offering.lifecycle.suspension.supported) return end('IDLE_TIMEOUT');
  return request(aggregate, 'SUSPEND', { cause: 'IDLE_TIMEOUT', source: 'policy', nowMs });
}

function provisionBy({ sandbox }: Aggregate): number {
  return (sandbox.acceptedAtMs ?? sandbox.createdAtMs) + sandbox.provisioningLimitMs;
}

function lifetimeEnd({ sandbox }: Aggregate): number {
  const { maxLifetimeSeconds } = sandbox.policy;
  return maxLifetimeSeconds === null
    ? Number.POSITIVE_INFINITY
    : (sandbox.acceptedAtMs ?? sandbox.createdAtMs) + maxLifetimeSeconds * 1_000;
}

function runtimeEnd({ sandbox, segment }: Aggregate): number {
  return segment?.state === 'RUNNING'
    ? segment.startsAtMs + sandbox.offering.lifecycle.maxContinuousRuntimeSeconds * 1_000
    : Number.POSITIVE_INFINITY;
}

function idleEnd({ sandbox, segment, isBusy }: Aggregate, nowMs: number): number {
  const { idleTimeoutSeconds } = sandbox.policy;
  if (idleTimeoutSeconds === null || segment?.state !== 'RUNNING') return Number.POSITIVE_INFINITY;
  const lastUsedAtMs = isBusy ? nowMs : Math.max(sandbox.lastUsedAtMs, segment.startsAtMs);
  return lastUsedAtMs + idleTimeoutSeconds * 1_000;
}

/** Returns when the sandbox must end at the current price, so that its cost stays below `maxTotalCostUsd`. */
function costEnd(aggregate: Aggregate, nowMs: number, { endingReserveMs }: Timings): number {
  const { sandbox, segment } = aggregate;
  const { maxTotalCostUsd } = sandbox.policy;
  if (maxTotalCostUsd === null || segment === undefined || segment.hourlyE8 === 0n) return Number.POSITIVE_INFINITY;
  const leftE8 = parseUsd(maxTotalCostUsd) - sandbox.totalCostE8 - dueE8(aggregate, nowMs);
  return nowMs + Number((leftE8 * 3_600_000n) / segment.hourlyE8) - endingReserveMs;
}

function planMoney(aggregate: Aggregate, nowMs: number, timings: Timings): Action | undefined {
  const { sandbox, period } = aggregate;
  if (period === undefined || period.coversUntilMs - nowMs > timings.renewBeforeMs) return undefined;
  const isLong = nowMs + timings.holdAheadMs > period.startedAtMs + timings.maxPeriodMs;
  const isUnknown = sandbox.observedState === 'UNKNOWN';
  // While the supplier is silent, do not renew the hold of a period at its maximum length, because an unconfirmed period cannot be settled.
  if (isLong && isUnknown) return undefined;
  const isConfirmed = sandbox.confirmedAtMs !== null && sandbox.confirmedAtMs > period.startedAtMs;
  if (isLong && isConfirmed) return record(rollPeriod(aggregate, nowMs, timings));
  const cover = coverFor(dueE8(aggregate, nowMs), currentHourlyE8(aggregate), nowMs, timings);
  return { kind: 'renew', period, ...cover };
}

/**
 * Applies the policy for exhausted funds shortly before the paid time ends. Returns undefined while the renewal of the hold can still be
 * retried, or while the suspension is in progress.
 */
function unpaid(aggregate: Aggregate, nowMs: number, timings: Timings): Change | undefined {
  const { sandbox, period } = aggregate;
  const coversUntilMs = period?.coversUntilMs ?? nowMs;
  if (nowMs < coversUntilMs - timings.endingReserveMs) return undefined;
  const mayWait =
    sandbox.policy.onFundsExhausted === 'suspend' &&
    sandbox.offering.lifecycle.suspension.supported &&
    sandbox.observedState === 'RUNNING' &&
    nowMs < coversUntilMs;
  if (mayWait && sandbox.desiredState === 'SUSPENDED') return undefined;
  const verb = mayWait ? 'SUSPEND' : 'TERMINATE';
  return request(aggregate, verb, { cause: 'FUNDS_EXHAUSTED', source: 'policy', nowMs });
}

function planSupplier(aggregate: Aggregate, nowMs: number, timings: Timings): readonly Action[] {
  const { sandbox } = aggregate;
  if (sandbox.supplierRef === null) return [{ kind: 'create' }];
  if (sandbox.observedState === 'RUNNING' && sandbox.desiredState === 'SUSPENDED') return [{ kind: 'suspend' }];
  if (sandbox.observedState === 'SUSPENDED' && sandbox.desiredState === 'RUNNING') return [{ kind: 'resume' }];
  if (nowMs < observeAt(aggregate, nowMs, timings)) return [];
  return [{ kind: 'inspect' }];
}

function isMoving({ sandbox }: Aggregate): boolean {
  const { observedState, desiredState, goneSinceMs } = sandbox;
  return (
    observedState === 'PROVISIONING' || observedState === 'UNKNOWN' || desiredState !== null || goneSinceMs !== null
  );
}

/** How long a new instance is inspected more often than later, because most instances are ready within a second. */
const YOUNG_MS = 5_000;
const OBSERVE_YOUNG_MS = 200;

function observeAt(aggregate: Aggregate, nowMs: number, timings: Timings): number {
  const { sandbox } = aggregate;
  const { confirmedAtMs, createSentAtMs } = sandbox;
  if (confirmedAtMs === null) return nowMs;
  const isYoung = sandbox.observedState === 'PROVISIONING' && nowMs - (createSentAtMs ?? 0) < YOUNG_MS;
  if (isYoung) return confirmedAtMs + Math.min(OBSERVE_YOUNG_MS, timings.observeMovingMs);
  return confirmedAtMs + (isMoving(aggregate) ? timings.observeMovingMs : timings.observeSteadyMs);
}

/** Returns when to visit this sandbox again, unless an event comes first. A pure function. */
export function nextVisit(aggregate: Aggregate, nowMs: number, timings: Timings): number {
  const { sandbox, settling, period } = aggregate;
  if (settling.length > 0) return nowMs + SETTLE_AGAIN_MS;
  if (sandbox.nextAtMs > nowMs) return sandbox.nextAtMs;
  const times = [observeAt(aggregate, nowMs, timings), nowMs + timings.observeSteadyMs];
  if (sandbox.lastConfirmedState === null || sandbox.lastConfirmedState === 'PROVISIONING')
    times.push(provisionBy(aggregate));
  else
    times.push(
      lifetimeEnd(aggregate),
      runtimeEnd(aggregate),
      idleEnd(aggregate, nowMs),
      costEnd(aggregate, nowMs, timings),
    );
  if (period !== undefined) {
    const renewAtMs = period.coversUntilMs - timings.renewBeforeMs;
    // Retry a failed renewal of the hold soon. The last retry is when the policy for exhausted funds applies.
    times.push(renewAtMs > nowMs ? renewAtMs : nowMs + timings.renewBeforeMs / 18);
    times.push(period.coversUntilMs - timings.endingReserveMs);
  }
  // Ignore times in the past, because this visit found nothing to do for them. The next visit comes at a later time or after an event.
  return Math.min(...times.filter((time) => time > nowMs).map((time) => Math.max(time, nowMs + MIN_PAUSE_MS)));
}

const SETTLE_AGAIN_MS = 5_000;
const MIN_PAUSE_MS = 50;
