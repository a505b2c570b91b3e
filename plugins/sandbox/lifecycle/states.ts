/** The state that the supplier last confirmed. UNKNOWN while the supplier is silent. */
export type ObservedState = (typeof OBSERVED_STATES)[number];
export type FinalState = 'FAILED' | 'TERMINATED';
export type ConfirmedState = Exclude<ObservedState, 'UNKNOWN'>;
/** The state that the latest lifecycle operation requests. null: none is requested. */
export type DesiredState = 'RUNNING' | 'SUSPENDED' | 'TERMINATED' | null;
export const LIFECYCLE_PHASES = [
  'PROVISIONING',
  'RUNNING',
  'SUSPENDING',
  'SUSPENDED',
  'RESUMING',
  'TERMINATING',
  'RECONCILING',
  'TERMINATED',
  'FAILED',
] as const;
type LifecyclePhase = (typeof LIFECYCLE_PHASES)[number];

export const OBSERVED_STATES = ['PROVISIONING', 'RUNNING', 'SUSPENDED', 'FAILED', 'TERMINATED', 'UNKNOWN'] as const;
export const FINAL_STATES = ['FAILED', 'TERMINATED'] as const;

export function isFinal(state: ObservedState): state is FinalState {
  return state === 'FAILED' || state === 'TERMINATED';
}

/** Returns the phase, which is never stored because the requested and the observed state determine it. */
export function phaseOf({
  desiredState: desired,
  observedState: observed,
}: {
  desiredState: DesiredState;
  observedState: ObservedState;
}): LifecyclePhase {
  if (isFinal(observed)) return observed;
  if (desired === 'TERMINATED') return 'TERMINATING';
  if (observed === 'UNKNOWN') return 'RECONCILING';
  if (observed === 'RUNNING' && desired === 'SUSPENDED') return 'SUSPENDING';
  if (observed === 'SUSPENDED' && desired === 'RUNNING') return 'RESUMING';
  return observed;
}

export const LIFECYCLE_VERBS = ['CREATE', 'SUSPEND', 'RESUME', 'TERMINATE'] as const;
export type LifecycleVerb = (typeof LIFECYCLE_VERBS)[number];

export const OPERATION_TYPES = [
  ...LIFECYCLE_VERBS,
  'EXEC',
  'SIGNAL',
  'FILE_READ',
  'FILE_WRITE',
  'FILE_LIST',
  'FILE_DELETE',
  'PORT_EXPOSE',
  'PORT_REVOKE',
] as const;
export type OperationType = (typeof OPERATION_TYPES)[number];
export const OPERATION_STATUSES = ['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const;
export type OperationStatus = (typeof OPERATION_STATUSES)[number];
