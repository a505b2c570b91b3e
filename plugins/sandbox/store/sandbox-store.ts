import type { Knex } from 'knex';
import { log } from '../../../core/base/log';
import { raiseEvents } from '../../../core/events/raise';
import { type Aggregate, applyChange, type Change } from '../lifecycle/aggregate';
import type { BillLine, Operation, Period, Sandbox, SandboxEvent, Segment } from '../lifecycle/sandbox';
import { isFinal } from '../lifecycle/states';
import type { Places } from './places';
import { traceEnded } from './queries';
import { fromRow, toRow } from './rows';

/** Reads and writes sandboxes. A change is written only if the sandbox has not changed since it was read. */
export interface SandboxStore {
  load(id: string): Promise<Aggregate | undefined>;
  /** Writes a change and returns the sandbox after it. Returns undefined, and writes nothing, if the sandbox has changed since `before`. */
  commit(before: Aggregate, change: Change, nowMs: number): Promise<Aggregate | undefined>;
  /**
   * Claims up to `limit` sandboxes for `claimMs`, if a visit of them is due. It takes only accepted, unfinished sandboxes. This node must
   * reach the sandbox, or the node that reaches it must have stopped reporting.
   */
  claim(nowMs: number, claimMs: number, limit: number): Promise<readonly Claim[]>;
  /** Extends a worker's claim on a sandbox. Returns false if the worker has lost the claim. */
  keep(claim: Claim, untilMs: number): Promise<boolean>;
  /** Ends a worker's claim and sets the sandbox's next visit. If the sandbox has changed since `revision`, keeps the visit time that the change has set. */
  release(claim: Claim, revision: number | undefined, nextAtMs: number): Promise<void>;
  /** Returns what the ledger charged for a billing period, once the entry is in Postgres. The ledger itself forgets the charge after a while. */
  chargeOf(period: Period): Promise<PeriodCharge | undefined>;
}

export interface Claim {
  readonly id: string;
  readonly epoch: number;
}

const LOAD = `
  SELECT to_jsonb(sandbox) AS sandbox,
    (SELECT to_jsonb(operation) FROM sandbox_operations AS operation
     WHERE operation.sandbox_id = sandbox.id AND operation.type IN ('CREATE', 'SUSPEND', 'RESUME', 'TERMINATE')
       AND operation.status IN ('PENDING', 'RUNNING')) AS operation,
    (SELECT to_jsonb(segment) FROM usage_segments AS segment
     WHERE segment.sandbox_id = sandbox.id AND segment.ends_at IS NULL) AS segment,
    (SELECT coalesce(jsonb_agg(to_jsonb(period) ORDER BY period.sequence), '[]') FROM billing_periods AS period
     WHERE period.sandbox_id = sandbox.id AND period.status <> 'SETTLED') AS periods,
    (SELECT coalesce(jsonb_agg(to_jsonb(line)), '[]') FROM billing_lines AS line
     JOIN billing_periods AS period ON period.id = line.period_id
     WHERE period.sandbox_id = sandbox.id AND period.status <> 'SETTLED') AS lines,
    EXISTS (SELECT FROM sandbox_commands AS command
            WHERE command.sandbox_id = sandbox.id AND command.status = 'RUNNING' AND NOT command.background) AS busy
  FROM sandboxes AS sandbox WHERE sandbox.id = ?`;

type Json = Record<string, unknown>;

interface Loaded {
  readonly sandbox: Json;
  readonly operation: Json | null;
  readonly segment: Json | null;
  readonly periods: readonly Json[];
  readonly lines: readonly Json[];
  readonly busy: boolean;
}

/** Loads a sandbox in one query, because all of its parts must be of the same moment. */
async function load(database: Knex, id: string): Promise<Aggregate | undefined> {
  const { rows } = await database.raw<{ rows: Loaded[] }>(LOAD, [id]);
  if (rows[0] === undefined) return undefined;
  const { sandbox, operation, segment, busy, ...row } = rows[0];
  const periods = row.periods.map((each) => fromRow<Period>(each));
  return {
    sandbox: fromRow<Sandbox>(sandbox),
    operation: operation === null ? undefined : fromRow<Operation>(operation),
    segment: segment === null ? undefined : fromRow<Segment>(segment),
    period: periods.find(({ status }) => status === 'OPEN'),
    settling: periods.filter(({ status }) => status === 'SETTLING'),
    lines: row.lines.map((each) => fromRow<BillLine>(each)),
    isBusy: busy,
  };
}

/** Writes a change in an open transaction. Returns undefined if the sandbox has changed since `before`. */
async function writeChange(
  transaction: Knex.Transaction,
  before: Aggregate,
  change: Change,
  nowMs: number,
): Promise<Aggregate | undefined> {
  const { after, event } = applyChange(before, change, nowMs);
  const { id, revision, leaseEpoch } = before.sandbox;
  const changed = await transaction('sandboxes')
    .where({ id, revision, lease_epoch: leaseEpoch, state_version: before.sandbox.stateVersion })
    .update(toRow(differences(before.sandbox, after.sandbox)));
  if (changed !== 1) return undefined;
  for (const row of change.operations ?? []) await put(transaction, 'sandbox_operations', row);
  if (change.dropLines !== undefined) await dropLines(transaction, change.dropLines);
  if (change.dropPeriods !== undefined) await transaction('billing_periods').whereIn('id', change.dropPeriods).delete();
  for (const row of change.segments ?? []) await put(transaction, 'usage_segments', row);
  for (const row of change.periods ?? []) await put(transaction, 'billing_periods', row);
  for (const row of change.lines ?? []) await put(transaction, 'billing_lines', row, ['period_id', 'segment_id']);
  if (event !== undefined) await transaction('sandbox_events').insert(toRow(event));
  if (isFinal(after.sandbox.observedState)) await cancelOperations(transaction, id, nowMs);
  if (event !== undefined) await raiseState(transaction, after.sandbox, event);
  return after;
}

/** Raises an event for the account if the observed state of its sandbox has changed. */
async function raiseState(
  transaction: Knex.Transaction,
  { accountId }: Sandbox,
  { sandboxId, sequence, previousState, currentState: state, message }: SandboxEvent,
): Promise<void> {
  if (previousState === state) return;
  const data = { sandboxId, state, previousState, message };
  await raiseEvents(transaction, log, [{ type: 'sandbox.state', accountId, once: `${sandboxId} ${sequence}`, data }]);
}

function differences(before: Sandbox, after: Sandbox): Partial<Sandbox> {
  return Object.fromEntries(
    Object.entries(after).filter(([field, value]) => !isSame(before[field as keyof Sandbox], value)),
  );
}

function isSame(one: unknown, other: unknown): boolean {
  const areObjects = typeof one === 'object' && typeof other === 'object';
  return one === other || (areObjects && JSON.stringify(one) === JSON.stringify(other));
}

async function put(transaction: Knex.Transaction, table: string, row: object, key: string[] = ['id']): Promise<void> {
  await transaction(table).insert(toRow(row)).onConflict(key).merge();
}

/** Cancels the operations of an ended sandbox, because the process that ran one may have been killed before it finished it. */
async function cancelOperations(transaction: Knex.Transaction, sandboxId: string, nowMs: number): Promise<void> {
  const error = { code: 'SANDBOX_FINAL', message: 'The sandbox ended before the request was carried out.' };
  await transaction('sandbox_operations')
    .where({ sandbox_id: sandboxId })
    .whereIn('status', ['PENDING', 'RUNNING'])
    .update(toRow({ status: 'CANCELLED', error, endedAtMs: nowMs }));
}

async function dropLines(
  transaction: Knex.Transaction,
  lines: readonly Pick<BillLine, 'periodId' | 'segmentId'>[],
): Promise<void> {
  for (const { periodId, segmentId } of lines) {
    await transaction('billing_lines').where({ period_id: periodId, segment_id: segmentId }).delete();
  }
}

const CLAIM = `
  UPDATE sandboxes SET lease_epoch = lease_epoch + 1, lease_until = :until
  WHERE id IN (
    SELECT id FROM sandboxes
    WHERE admission = 'ACCEPTED' AND observed_state NOT IN ('FAILED', 'TERMINATED')
      AND next_at <= :now AND (lease_until IS NULL OR lease_until < :now)
      AND (place IS NULL OR place IN (SELECT jsonb_array_elements_text(:own::jsonb))
           OR place NOT IN (SELECT id FROM sandbox_places WHERE seen_at >= :silentBefore))
    ORDER BY next_at LIMIT :limit FOR UPDATE SKIP LOCKED)
  RETURNING id::text, lease_epoch AS epoch`;

export function openSandboxStore(
  database: Knex,
  announce: (transaction: Knex, id: string) => Promise<void>,
  places: Pick<Places, 'own' | 'silentBefore'>,
): SandboxStore {
  const owned = ({ id, epoch }: Claim) => database('sandboxes').where({ id, lease_epoch: epoch });
  const write = async (before: Aggregate, change: Change, nowMs: number) => {
    const isOneRow = Object.keys(change).length === 1;
    if (isOneRow) return writeChange(database as Knex.Transaction, before, change, nowMs);
    return database.transaction(async (transaction) => {
      const after = await writeChange(transaction, before, change, nowMs);
      if (after !== undefined && change.event !== undefined) await announce(transaction, after.sandbox.id);
      return after;
    });
  };
  return {
    load: (id) => load(database, id),
    commit: async (before, change, nowMs) => {
      const after = await write(before, change, nowMs);
      if (after !== undefined) for (const operation of change.operations ?? []) traceEnded(operation);
      return after;
    },
    claim: async (nowMs, claimMs, limit) => {
      const times = { now: new Date(nowMs), until: new Date(nowMs + claimMs) };
      const own = JSON.stringify(places.own());
      const bindings = { ...times, limit, own, silentBefore: places.silentBefore() };
      return (await database.raw<{ rows: Claim[] }>(CLAIM, bindings)).rows;
    },
    keep: async (claim, untilMs) => (await owned(claim).update({ lease_until: new Date(untilMs) })) === 1,
    release: async (claim, revision, nextAtMs) => {
      const next = database.raw('CASE WHEN revision = coalesce(?, revision) THEN ? ELSE next_at END', [
        revision ?? null,
        new Date(nextAtMs),
      ]);
      await owned(claim).update({ lease_until: null, next_at: next });
    },
    chargeOf: async ({ accountId, holdId }) => {
      const [entry] = await database('ledger_entries')
        .where({ account_id: accountId, rid: holdId, kind: 'charge' })
        .select({ amountE8: 'amount_e8', shortfallE8: 'shortfall_e8' });
      return entry && { chargedE8: -BigInt(entry.amountE8), shortfallE8: BigInt(entry.shortfallE8) };
    },
  };
}

/** What the ledger charged for a period. The shortfall is the part of the due amount that it could not charge. */
export interface PeriodCharge {
  readonly chargedE8: bigint;
  readonly shortfallE8: bigint;
}
