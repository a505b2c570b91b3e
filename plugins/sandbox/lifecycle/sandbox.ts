import type { BilledState, Offering } from '../offerings/offering';
import type { InstanceReference, InstanceSpec } from '../suppliers/supplier';
import type { ConfirmedState, DesiredState, FinalState, ObservedState, OperationStatus, OperationType } from './states';

export interface SandboxPolicy {
  readonly resumeOnAccess: boolean;
  readonly idleTimeoutSeconds: number | null;
  readonly maxLifetimeSeconds: number | null;
  /** A decimal amount in USD. */
  readonly maxTotalCostUsd: string | null;
  readonly onFundsExhausted: 'suspend' | 'terminate';
}

export interface SandboxFailure {
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
  /** PENDING: invisible to callers, because its hold may not exist yet. */
  readonly admission: 'PENDING' | 'ACCEPTED' | 'CANCELLED';
  readonly quoteId: string | null;
  readonly offeringId: string;
  /** The offering as it was when the sandbox was created. */
  readonly offering: Offering;
  readonly supplier: string;
  /** The place (data folder) of the instance; null if every node reaches it. Before a `create` is sent, the place where the instance should be created. */
  readonly place: string | null;
  readonly spec: InstanceSpec;
  readonly provisioningLimitMs: number;
  readonly policy: SandboxPolicy;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The tags that its creator gave, for its holds (`ReserveRequest.tags`); null without tags. */
  readonly tags: string | null;
  readonly observedState: ObservedState;
  readonly desiredState: DesiredState;
  readonly lastConfirmedState: ConfirmedState | null;
  /** How the sandbox will end. Set as soon as that is certain, which may be before it ends. */
  readonly finalState: FinalState | null;
  readonly failure: SandboxFailure | null;
  /** Increases with every change of the state. */
  readonly stateVersion: number;
  /** Increases with every change of the row, so that a concurrent write is noticed. */
  readonly revision: number;
  readonly eventSequence: number;
  readonly segmentSequence: number;
  readonly supplierRef: InstanceReference | null;
  /** Identifies the start of the instance that the supplier last confirmed. An instance that was started anew has another value. */
  readonly incarnation: string | null;
  /** When a `create` was last sent to the supplier. null: no instance can exist. */
  readonly createSentAtMs: number | null;
  /** When a suspension, resumption or termination was first sent. Cleared by the next confirmation. */
  readonly actionSentAtMs: number | null;
  /** When the supplier last confirmed the state. Nothing is billed past it. */
  readonly confirmedAtMs: number | null;
  readonly silentTries: number;
  /** When the instance was first found missing without having been ended. */
  readonly goneSinceMs: number | null;
  /** When the instance stopped by itself, as far as the supplier knows. */
  readonly stoppedAtMs: number | null;
  /** How many tries of the current action failed. It sets the back-off. */
  readonly attempts: number;
  readonly lastUsedAtMs: number;
  readonly totalCostE8: bigint;
  readonly reservedUntilMs: number | null;
  readonly createdAtMs: number;
  readonly acceptedAtMs: number | null;
  /** When the instance ended, once that is certain. */
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
  /** What caused the operation: `caller`, or the name of a rule. */
  readonly cause: string;
  readonly idempotencyKey: string | null;
  readonly requestedAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly error: SandboxFailure | null;
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

/** A span of time in one state at one price. */
export interface Segment {
  readonly id: string;
  readonly sandboxId: string;
  readonly sequence: number;
  readonly state: BilledState;
  readonly hourlyE8: bigint;
  readonly startsAtMs: number;
  readonly endsAtMs: number | null;
}

/** A billing period: a span of time that one hold pays. */
export interface Period {
  readonly id: string;
  readonly sandboxId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly sequence: number;
  readonly holdId: string;
  /** SETTLING: the amount due is known, but the ledger's charge is not. Callers see such a billing period as OPEN. */
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

/** The part of a segment (time at one price) that lies within one billing period, and its cost. */
export interface BillLine {
  readonly periodId: string;
  readonly segmentId: string;
  readonly startsAtMs: number;
  readonly endsAtMs: number;
  readonly amountE8: bigint;
}
