import { newId } from '../../../core/ids';
import type { Payer } from '../../../core/ledger/payer';
import { parseUsd } from '../../../core/money';
import type { Period, Sandbox } from '../life/sandbox';
import type { OfferedInstance } from '../offers/offering';
import type { Creation } from './creation';

/** Returns a sandbox as it is first written: no client sees it yet. */
export function newSandbox(
  { accountId, keyId }: Payer,
  { idempotencyKey, requestHash, policy, metadata, selection }: Creation,
  { offering, spec, provisioningLimitMs }: OfferedInstance,
  nowMs: number,
): Sandbox {
  return {
    id: newId(),
    accountId,
    keyId,
    idempotencyKey,
    requestHash,
    admission: 'PENDING',
    quoteId: 'quoteId' in selection ? selection.quoteId : null,
    offeringId: offering.id,
    offering,
    supplier: offering.supplier,
    place: null,
    spec,
    provisioningLimitMs,
    policy,
    metadata,
    observedState: 'PROVISIONING',
    desiredState: 'RUNNING',
    lastConfirmedState: null,
    finalState: null,
    failure: null,
    stateVersion: 0,
    revision: 0,
    eventSequence: 0,
    segmentSequence: 0,
    supplierRef: null,
    incarnation: null,
    createSentAtMs: null,
    actionSentAtMs: null,
    confirmedAtMs: null,
    silentTries: 0,
    goneSinceMs: null,
    stoppedAtMs: null,
    attempts: 0,
    lastUsedAtMs: nowMs,
    totalCostE8: 0n,
    reservedUntilMs: null,
    createdAtMs: nowMs,
    acceptedAtMs: null,
    endedAtMs: null,
    terminatedAtMs: null,
    nextAtMs: nowMs,
    leaseEpoch: 0,
  };
}

/** Returns the first billing period, which the initial hold pays. */
export function firstPeriod({ id, accountId, keyId, offering, createdAtMs }: Sandbox, holdAheadMs: number): Period {
  return {
    id: newId(),
    sandboxId: id,
    accountId,
    keyId,
    sequence: 1,
    holdId: newId(),
    status: 'OPEN',
    reservedE8: parseUsd(offering.billing.initialReservationUsd),
    dueE8: null,
    amountE8: null,
    shortfallE8: 0n,
    startedAtMs: createdAtMs,
    coversUntilMs: createdAtMs + holdAheadMs,
    endedAtMs: null,
    settledAtMs: null,
  };
}
