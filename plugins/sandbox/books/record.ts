import type { Knex } from 'knex';
import { fail } from '../../../core/errors';
import { formatUsd } from '../../../core/money';
import { UUID } from '../../../core/storage/page';
import type { Operation, Period, Sandbox, SandboxEvent, Segment } from '../life/sandbox';
import { phaseOf } from '../life/states';
import { fromRow } from './rows';

/** Operations, events and the like in a record at most; all of them are in the audit. */
const RECENT = 20;

type BilledSegment = Segment & { readonly amountE8: bigint };

interface Audited {
  readonly operations: readonly Operation[];
  readonly events: readonly SandboxEvent[];
  readonly segments: readonly BilledSegment[];
  readonly periods: readonly Period[];
  readonly counts: Readonly<Record<'operations' | 'events' | 'usageSegments' | 'billingPeriods', number>>;
}

/** A segment with the sum of its lines. */
export const SEGMENTS = `
  SELECT segment.*, (SELECT coalesce(sum(line.amount_e8), 0) FROM billing_lines AS line WHERE line.segment_id = segment.id)::bigint
    AS amount_e8
  FROM usage_segments AS segment`;

const recent = (query: string, order: string) =>
  `(SELECT coalesce(jsonb_agg(to_jsonb(recent) ORDER BY recent.${order}), '[]')
    FROM (${query} WHERE sandbox_id = sandbox.id ORDER BY ${order} DESC LIMIT ${RECENT}) AS recent)`;

const count = (table: string) => `(SELECT count(*)::int FROM ${table} WHERE sandbox_id = sandbox.id)`;

/** One statement: everything a record shows is of one moment. */
const RECORD = `
  SELECT to_jsonb(sandbox) AS sandbox,
    ${recent('SELECT * FROM sandbox_operations', 'id')} AS operations,
    ${recent('SELECT * FROM sandbox_events', 'sequence')} AS events,
    ${recent(SEGMENTS, 'sequence')} AS segments,
    ${recent('SELECT * FROM billing_periods', 'sequence')} AS periods,
    jsonb_build_object('operations', ${count('sandbox_operations')}, 'events', ${count('sandbox_events')},
      'usageSegments', ${count('usage_segments')}, 'billingPeriods', ${count('billing_periods')}) AS counts
  FROM sandboxes AS sandbox
  WHERE sandbox.id = :id AND sandbox.account_id = :accountId AND sandbox.admission = 'ACCEPTED'`;

type Json = Record<string, unknown>;

/** Returns the whole record of the account's sandbox; docs/contract.md, section 8.2. @throws SANDBOX_NOT_FOUND */
export async function readRecord(database: Knex, accountId: string, id: string) {
  if (!UUID.test(id)) throw fail('SANDBOX_NOT_FOUND');
  const { rows } = await database.raw<{
    rows: {
      sandbox: Json;
      operations: Json[];
      events: Json[];
      segments: Json[];
      periods: Json[];
      counts: Audited['counts'];
    }[];
  }>(RECORD, { id, accountId });
  const [row] = rows;
  if (row === undefined) throw fail('SANDBOX_NOT_FOUND');
  const sandbox = fromRow<Sandbox>(row.sandbox);
  return {
    ...showSandbox(sandbox),
    offering: sandbox.offering,
    operations: row.operations.map((each) => showOperation(fromRow(each))),
    events: row.events.map((each) => showEvent(fromRow(each))),
    usageSegments: row.segments.map((each) => showSegment(fromRow(each))),
    billingPeriods: row.periods.map((each) => showPeriod(fromRow(each))),
    auditCounts: row.counts,
  };
}

export type SandboxRecord = Awaited<ReturnType<typeof readRecord>>;

/** What lists show. */
export function showSandbox(sandbox: Sandbox) {
  const { offering, policy } = sandbox;
  return {
    id: sandbox.id,
    offeringId: sandbox.offeringId,
    offeringName: offering.name,
    observedState: sandbox.observedState,
    desiredState: sandbox.desiredState,
    lifecyclePhase: phaseOf(sandbox),
    lastConfirmedState: sandbox.lastConfirmedState,
    stateVersion: sandbox.stateVersion,
    totalCost: formatUsd(sandbox.totalCostE8),
    resources: offering.resources,
    reservedUntil: showTime(sandbox.reservedUntilMs),
    createdAt: showTime(sandbox.createdAtMs),
    terminatedAt: showTime(sandbox.terminatedAtMs),
    idempotencyKey: sandbox.idempotencyKey,
    policy,
    autoResume: policy.resumeOnAccess,
    metadata: sandbox.metadata,
    failure: sandbox.failure,
  };
}

export function showTime(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}

export function showOperation(operation: Operation) {
  return {
    id: operation.id,
    type: operation.type,
    status: operation.status,
    cause: operation.cause,
    idempotencyKey: operation.idempotencyKey,
    requestedAt: showTime(operation.requestedAtMs),
    startedAt: showTime(operation.startedAtMs),
    endedAt: showTime(operation.endedAtMs),
    error: operation.error,
    result: operation.result,
    noop: operation.noop,
  };
}

export function showEvent({ sandboxId: _, createdAtMs, ...event }: SandboxEvent) {
  return { ...event, createdAt: showTime(createdAtMs) };
}

export function showSegment(segment: BilledSegment) {
  const { startsAtMs, endsAtMs } = segment;
  return {
    id: segment.id,
    sequence: segment.sequence,
    state: segment.state,
    startsAt: showTime(startsAtMs),
    endsAt: showTime(endsAtMs),
    status: endsAtMs === null ? 'OPEN' : 'SETTLED',
    hourlyUsd: formatUsd(segment.hourlyE8),
    seconds: endsAtMs === null ? null : (endsAtMs - startsAtMs) / 1_000,
    amount: formatUsd(segment.amountE8),
  };
}

/** While it is being settled it is shown as open: what was charged is not known yet. */
export function showPeriod(period: Period) {
  const isSettled = period.status === 'SETTLED';
  return {
    id: period.id,
    sequence: period.sequence,
    startedAt: showTime(period.startedAtMs),
    endedAt: isSettled ? showTime(period.endedAtMs) : null,
    coversUntil: showTime(period.coversUntilMs),
    status: isSettled ? 'SETTLED' : 'OPEN',
    reservedAmount: formatUsd(period.reservedE8),
    amount: isSettled ? formatUsd(period.amountE8 ?? 0n) : null,
    settledAt: showTime(period.settledAtMs),
  };
}
