import type { BilledState, Offering } from '../offers/offering';
import type { InstanceReference, InstanceSpec } from '../suppliers/supplier';
import type { ConfirmedState, DesiredState, FinalState, ObservedState, OperationStatus, OperationType } from './states';

export interface SandboxPolicy {
  readonly resumeOnAccess: boolean;
  readonly idleTimeoutSeconds: number | null;
  readonly maxLifetimeSeconds: number | null;
  /** Decimal USD. */
  readonly maxTotalCostUsd: string | null;
  readonly onFundsExhausted: 'suspend' | 'terminate';
}

export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** One row of `sandboxes`. Times are milliseconds since 1970. */
export interface Sandbox {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly idempotencyKey: string;
  readonly requestHash: string;
  /** PENDING is invisible: its hold may not be there yet. */
  readonly admission: 'PENDING' | 'ACCEPTED' | 'CANCELLED';
  readonly quoteId: string | null;
  readonly offeringId: string;
  /** As it was when the sandbox was made. */
  readonly offering: Offering;
  readonly supplier: string;
  /** Where its instance lives, when not every node reaches it. Before a create was sent: where it is wanted. */
  readonly place: string | null;
  readonly spec: InstanceSpec;
  readonly provisioningLimitMs: number;
  readonly policy: SandboxPolicy;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly observedState: ObservedState;
  readonly desiredState: DesiredState;
  readonly lastConfirmedState: ConfirmedState | null;
  /** Set once it is certain how it ends, before it has ended. */
  readonly finalState: FinalState | null;
  readonly failure: Failure | null;
  /** Increases when a state changes. */
  readonly stateVersion: number;
  /** Increases with every change. */
  readonly revision: number;
  readonly eventSequence: number;
  readonly segmentSequence: number;
  readonly supplierRef: InstanceReference | null;
  /** Of the instance that was confirmed to run; another one is not it. */
  readonly incarnation: string | null;
  /** When a create was last sent; null: there cannot be an instance. */
  readonly createSentAtMs: number | null;
  /** When a suspension, resumption or termination was first sent, while nothing has been seen since. */
  readonly actionSentAtMs: number | null;
  /** When the supplier last said what the state is. Nothing is billed past it. */
  readonly confirmedAtMs: number | null;
  readonly silentTries: number;
  /** When the instance was first found gone without having been ended. */
  readonly goneSinceMs: number | null;
  /** When it stopped by itself, as far as the supplier knows. */
  readonly stoppedAtMs: number | null;
  /** Tries of the action under way that failed; for the back-off. */
  readonly attempts: number;
  readonly lastUsedAtMs: number;
  readonly totalCostE8: bigint;
  readonly reservedUntilMs: number | null;
  readonly createdAtMs: number;
  readonly acceptedAtMs: number | null;
  /** When its instance ended, once that is certain. */
  readonly endedAtMs: number | null;
  readonly terminatedAtMs: number | null;
  readonly nextAtMs: number;
  readonly leaseEpoch: number;
}

export interface Operation {
  readonly id: string;
  readonly sandboxId: string;
  readonly type: OperationType;
  readonly status: OperationStatus;
  /** Who asked for it: `caller`, or the rule that did. */
  readonly cause: string;
  readonly idempotencyKey: string | null;
  readonly requestedAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly error: Failure | null;
  readonly result: object | null;
  readonly noop: boolean;
}

export interface SandboxEvent {
  readonly id: string;
  readonly sandboxId: string;
  readonly sequence: number;
  readonly type: string;
  readonly status: 'PENDING' | 'SUCCEEDED' | 'FAILED';
  readonly previousState: ObservedState | null;
  readonly currentState: ObservedState;
  readonly lifecyclePhase: string;
  readonly stateVersion: number;
  readonly operationId: string | null;
  readonly source: 'caller' | 'supplier' | 'policy' | 'gateway';
  readonly message: string | null;
  readonly createdAtMs: number;
}

/** Time in one state at one price. */
export interface Segment {
  readonly id: string;
  readonly sandboxId: string;
  readonly sequence: number;
  readonly state: BilledState;
  readonly hourlyE8: bigint;
  readonly startsAtMs: number;
  readonly endsAtMs: number | null;
}

/** Time paid from one hold. */
export interface Period {
  readonly id: string;
  readonly sandboxId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly sequence: number;
  readonly holdId: string;
  /** SETTLING is shown as OPEN: what is due is known, what was charged is not yet. */
  readonly status: 'OPEN' | 'SETTLING' | 'SETTLED';
  readonly reservedE8: bigint;
  readonly dueE8: bigint | null;
  readonly amountE8: bigint | null;
  readonly shortfallE8: bigint;
  readonly startedAtMs: number;
  readonly coversUntilMs: number;
  readonly endedAtMs: number | null;
  readonly settledAtMs: number | null;
}

/** The part of a segment that falls into a period, and its price. */
export interface Line {
  readonly periodId: string;
  readonly segmentId: string;
  readonly startsAtMs: number;
  readonly endsAtMs: number;
  readonly amountE8: bigint;
}
