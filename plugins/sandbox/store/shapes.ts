import { listOf, object, oneOf, orNull, shape } from '../../../core/http/shape';
import { LIFECYCLE_PHASES, OBSERVED_STATES, OPERATION_STATUSES, OPERATION_TYPES } from '../lifecycle/states';
import { CAPABILITIES } from '../offerings/offering';

/** The objects that callers see, as the OpenAPI document describes them; docs/contract.md, section 8.2. */

const STATE = oneOf(...OBSERVED_STATES);
const PHASE = oneOf(...LIFECYCLE_PHASES);
const FAILURE = orNull(object({ code: shape.text, message: shape.text }));
const OPENED = oneOf('OPEN', 'SETTLED');

const RESOURCES = object({
  cpu: shape.number,
  memoryGiB: shape.number,
  volumeGiB: shape.number,
  gpu: listOf(object({ model: shape.text, count: shape.integer })),
});

export const OFFERING = object({
  id: shape.uuid,
  name: shape.text,
  supplier: shape.text,
  status: oneOf('AVAILABLE', 'UNAVAILABLE'),
  region: shape.text,
  isolation: {
    ...oneOf('virtual-machine', 'container', 'namespaces', 'none'),
    description:
      'What separates a sandbox from its host. none: no protection against an attacker; commands may see the host at ' +
      'absolute paths, but the files API shows the sandbox there, so use relative paths.',
  },
  resources: RESOURCES,
  capabilities: object(Object.fromEntries(CAPABILITIES.map((each) => [each, shape.yes]))),
  lifecycle: object({
    suspension: object({ supported: shape.yes, preserves: orNull(oneOf('memory', 'filesystem')) }),
    resumeOnAccess: shape.yes,
    maxContinuousRuntimeSeconds: shape.integer,
  }),
  billing: object({
    currency: oneOf('USD'),
    estimatedHourlyUsdByState: object({ PROVISIONING: shape.usd, RUNNING: shape.usd, SUSPENDED: shape.usd }),
    initialReservationUsd: shape.usd,
  }),
});

export const OPERATION_MEMBERS = {
  id: shape.uuid,
  type: oneOf(...OPERATION_TYPES),
  status: oneOf(...OPERATION_STATUSES),
  cause: { type: 'string', description: 'The origin of the change: `caller`, or the name of a rule.' },
  idempotencyKey: orNull(shape.text),
  requestedAt: shape.time,
  startedAt: orNull(shape.time),
  endedAt: orNull(shape.time),
  error: FAILURE,
  result: orNull({ type: 'object' }),
  noop: { type: 'boolean', description: 'Nothing had to be changed.' },
};
export const OPERATION = object(OPERATION_MEMBERS);

export const EVENT_MEMBERS = {
  id: shape.uuid,
  sequence: shape.integer,
  type: shape.text,
  status: oneOf('PENDING', 'SUCCEEDED', 'FAILED'),
  previousState: orNull(STATE),
  currentState: STATE,
  lifecyclePhase: PHASE,
  stateVersion: shape.integer,
  operationId: orNull(shape.uuid),
  source: oneOf('caller', 'supplier', 'policy', 'gateway'),
  message: orNull(shape.text),
  createdAt: shape.time,
};
export const EVENT = object(EVENT_MEMBERS);

export const SEGMENT_MEMBERS = {
  id: shape.uuid,
  sequence: shape.integer,
  state: oneOf('PROVISIONING', 'RUNNING', 'SUSPENDED'),
  startsAt: shape.time,
  endsAt: orNull(shape.time),
  status: OPENED,
  hourlyUsd: shape.usd,
  seconds: orNull(shape.number),
  amount: shape.usd,
};
export const SEGMENT = object(SEGMENT_MEMBERS);

export const PERIOD_MEMBERS = {
  id: shape.uuid,
  sequence: shape.integer,
  startedAt: shape.time,
  endedAt: orNull(shape.time),
  coversUntil: shape.time,
  status: OPENED,
  reservedAmount: shape.usd,
  amount: orNull(shape.usd),
  settledAt: orNull(shape.time),
};
export const PERIOD = object(PERIOD_MEMBERS);

/** The members that every reader of the sandbox may see. */
const SEEN_BY_ALL = {
  id: shape.uuid,
  offeringId: shape.uuid,
  offeringName: shape.text,
  observedState: STATE,
  desiredState: orNull(oneOf('RUNNING', 'SUSPENDED', 'TERMINATED')),
  lifecyclePhase: PHASE,
  lastConfirmedState: orNull(oneOf(...OBSERVED_STATES.filter((each) => each !== 'UNKNOWN'))),
  stateVersion: shape.integer,
  totalCost: shape.usd,
  resources: RESOURCES,
  reservedUntil: orNull(shape.time),
  createdAt: shape.time,
  terminatedAt: orNull(shape.time),
  policy: object({
    resumeOnAccess: shape.yes,
    idleTimeoutSeconds: orNull(shape.integer),
    maxLifetimeSeconds: orNull(shape.integer),
    maxTotalCostUsd: orNull(shape.usd),
    onFundsExhausted: oneOf('suspend', 'terminate'),
  }),
  autoResume: { ...shape.yes, deprecated: true, description: 'Use policy.resumeOnAccess.' },
  failure: FAILURE,
};

export const SANDBOX_MEMBERS = { ...SEEN_BY_ALL, idempotencyKey: shape.text, metadata: { type: 'object' } };

/** A sandbox as lists show it. */
export const SANDBOX = object(SANDBOX_MEMBERS);

/** The members of a sandbox that operators see, whichever account owns it. Metadata is omitted, because it belongs to the customer. */
export const OPERATORS_MEMBERS = {
  ...SEEN_BY_ALL,
  accountId: shape.uuid,
  keyId: shape.uuid,
  supplier: shape.text,
  place: orNull(shape.text),
  supplierRef: orNull({ type: 'object' }),
};
export const SANDBOX_OF_ANY = object(OPERATORS_MEMBERS);

/** The headers of an answer whose body is a sandbox's record, as the OpenAPI document describes them. */
export const RECORD_HEADERS = { ETag: 'Changes with the state; for `If-Match`.' };

/** The whole record of a sandbox, as the OpenAPI document describes it. */
export const SANDBOX_RECORD = object({
  ...SANDBOX_MEMBERS,
  offering: OFFERING,
  operations: listOf(OPERATION),
  events: listOf(EVENT),
  usageSegments: listOf(SEGMENT),
  billingPeriods: listOf(PERIOD),
  auditCounts: object({
    operations: shape.integer,
    events: shape.integer,
    usageSegments: shape.integer,
    billingPeriods: shape.integer,
  }),
});
