import type { Knex } from 'knex';
import { fail } from '../../../core/base/errors';
import { formatUsd } from '../../../core/base/money';
import { UUID } from '../../../core/storage/page';
import type { Operation, Period, Sandbox, SandboxEvent, Segment } from '../lifecycle/sandbox';
import { phaseOf } from '../lifecycle/states';
import { fromRow, show } from './rows';
import {
  EVENT_MEMBERS,
  OPERATION_MEMBERS,
  OPERATORS_MEMBERS,
  PERIOD_MEMBERS,
  SANDBOX_MEMBERS,
  SEGMENT_MEMBERS,
} from './shapes';

/** The maximum number of operations, events and other rows that a sandbox's record shows. The audit endpoints list all of them. */
const RECENT = 20;

type BilledSegment = Segment & { readonly amountE8: bigint };

/** The query of a sandbox's segments, each with the sum of its bill lines. */
export const SEGMENTS = `
  SELECT segment.*, (SELECT coalesce(sum(line.amount_e8), 0) FROM billing_lines AS line WHERE line.segment_id = segment.id)::bigint
    AS amount_e8
  FROM usage_segments AS segment`;

const recent = (query: string, order: string) =>
  `(SELECT coalesce(jsonb_agg(to_jsonb(recent) ORDER BY recent.${order}), '[]')
    FROM (${query} WHERE sandbox_id = sandbox.id ORDER BY ${order} DESC LIMIT ${RECENT}) AS recent)`;

const count = (table: string) => `(SELECT count(*)::int FROM ${table} WHERE sandbox_id = sandbox.id)`;

/** The query of a sandbox's whole record. It is one query, because all parts of the record must be of the same moment. */
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

interface RecordRow extends Readonly<Record<'operations' | 'events' | 'segments' | 'periods', readonly Json[]>> {
  readonly sandbox: Json;
  readonly counts: Readonly<Record<'operations' | 'events' | 'usageSegments' | 'billingPeriods', number>>;
}

/** Returns the whole record of the account's sandbox; docs/contract.md, section 8.2. @throws SANDBOX_NOT_FOUND */
export async function readRecord(database: Knex, accountId: string, id: string) {
  if (!UUID.test(id)) throw fail('SANDBOX_NOT_FOUND');
  const { rows } = await database.raw<{ rows: RecordRow[] }>(RECORD, { id, accountId });
  const [row] = rows;
  if (row === undefined) throw fail('SANDBOX_NOT_FOUND');
  const sandbox = fromRow<Sandbox>(row.sandbox);
  return {
    ...showSandbox(sandbox),
    stateVersion: sandbox.stateVersion,
    offering: sandbox.offering,
    operations: row.operations.map((each) => showOperation(fromRow(each))),
    events: row.events.map((each) => showEvent(fromRow(each))),
    usageSegments: row.segments.map((each) => showSegment(fromRow(each))),
    billingPeriods: row.periods.map((each) => showPeriod(fromRow(each))),
    auditCounts: row.counts,
  };
}

/** Returns a sandbox as lists show it. */
export const showSandbox = (sandbox: Sandbox) => show(SANDBOX_MEMBERS, withFacts(sandbox));

/** Returns a sandbox as operators see it. */
export const showSandboxToOperators = (sandbox: Sandbox) => show(OPERATORS_MEMBERS, withFacts(sandbox));

function withFacts(sandbox: Sandbox) {
  const { name: offeringName, resources } = sandbox.offering;
  const autoResume = sandbox.policy.resumeOnAccess;
  return { ...sandbox, offeringName, resources, lifecyclePhase: phaseOf(sandbox), autoResume };
}

export const showOperation = (operation: Operation) => show(OPERATION_MEMBERS, operation);
export const showEvent = (event: SandboxEvent) => show(EVENT_MEMBERS, event);

export function showSegment(segment: BilledSegment) {
  const { startsAtMs, endsAtMs } = segment;
  return show(SEGMENT_MEMBERS, {
    ...segment,
    status: endsAtMs === null ? 'OPEN' : 'SETTLED',
    hourlyUsd: formatUsd(segment.hourlyE8),
    seconds: endsAtMs === null ? null : (endsAtMs - startsAtMs) / 1_000,
  });
}

/** Returns a period as callers see it. A period that is being settled is shown as open, because its charge is not known yet. */
export function showPeriod(period: Period) {
  const isSettled = period.status === 'SETTLED';
  return show(PERIOD_MEMBERS, {
    ...period,
    endedAtMs: isSettled ? period.endedAtMs : null,
    status: isSettled ? 'SETTLED' : 'OPEN',
    reservedAmountE8: period.reservedE8,
    amountE8: isSettled ? (period.amountE8 ?? 0n) : null,
  });
}
