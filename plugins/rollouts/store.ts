import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import { newId } from '../../core/base/ids';
import type { SeenCall } from '../../core/rollouts/live-rollouts';
import type { Rollout } from '../../core/rollouts/rollout';
import { BEFORE_ITS_STAGES, type Looks, type Status } from './decide';
import { countForGuards, type GuardCounts } from './guards';

/** The row of a rollout in Postgres. */
export interface RolloutRow {
  readonly name: string;
  readonly definition: string;
  readonly run: string;
  readonly status: Status;
  readonly stage: number;
  /** The shares of all stages, as configured on the node that began the rollout or last changed its stages. */
  readonly shares: readonly number[];
  readonly stage_since: Date;
  readonly changed_at: Date;
  /** When a node last wrote that it watches the rollout. */
  readonly followed_at: Date;
  /** Why the rollout does not continue. */
  readonly reason: string | null;
  readonly looks: Looks;
}

export async function readRows(database: Knex): Promise<ReadonlyMap<string, RolloutRow>> {
  const rows: RolloutRow[] = await database<RolloutRow>('rollouts').select();
  return new Map(rows.map((row) => [row.name, row]));
}

/** The key of the Postgres lock that engines and operators hold while they change rollouts. The number is arbitrary. */
export const LOCK = 0x70_6c_72;

/** Runs `work` in a transaction, unless another process is changing rollouts. Returns whether `work` ran. */
export function unlessOtherDoes(database: Knex, work: (trx: Knex.Transaction) => Promise<void>): Promise<boolean> {
  return database.transaction(async (trx) => {
    const { rows } = await trx.raw<{ rows: { mine: boolean }[] }>('SELECT pg_try_advisory_xact_lock(?) AS mine', [
      LOCK,
    ]);
    if (rows[0]?.mine !== true) return false;
    await work(trx);
    return true;
  });
}

/** Waits for the lock of rollout changes, then runs `work` in a transaction. */
export function alone<T>(database: Knex, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  return database.transaction(async (trx) => {
    await trx.raw('SELECT pg_advisory_xact_lock(?)', [LOCK]);
    return work(trx);
  });
}

/** Reads the database's clock, which all nodes use. */
export async function readNow(database: Knex): Promise<Date> {
  const { rows } = await database.raw<{ rows: { now: Date }[] }>('SELECT clock_timestamp() AS now');
  return rows[0]?.now ?? new Date();
}

/** Begins a new run of a rollout at the first stage, and deletes the counts of its previous run. */
export async function beginRun(trx: Knex.Transaction, rollout: Rollout, now: Date): Promise<RolloutRow> {
  const { name, definition } = rollout;
  const before: RolloutRow | undefined = await trx<RolloutRow>('rollouts').where({ name }).first();
  if (before !== undefined) await forgetSeen(trx, before.run);
  const row = { name, definition, run: newId(), status: 'running', stage: 1, looks: {}, reason: null } as const;
  const begun: RolloutRow = { ...row, shares: sharesOf(rollout), stage_since: now, changed_at: now, followed_at: now };
  await trx('rollouts').insert(toColumns(begun)).onConflict('name').merge();
  return begun;
}

export async function updateRow(trx: Knex.Transaction, row: RolloutRow, change: Partial<RolloutRow>): Promise<void> {
  await trx('rollouts').where({ name: row.name }).update(toColumns(change));
}

function toColumns({ looks, shares, ...plain }: Partial<RolloutRow>): object {
  return {
    ...plain,
    ...(looks !== undefined && { looks: JSON.stringify(looks) }),
    ...(shares !== undefined && { shares: JSON.stringify(shares) }),
  };
}

/** Moves the counts of the run `before` to a new run, all under the stage number `BEFORE_ITS_STAGES`. Returns the new run's id. */
export async function carrySeen(trx: Knex.Transaction, before: string): Promise<string> {
  const run = newId();
  await trx.raw(
    `INSERT INTO rollout_counts (run, stage, group_name, counted, count)
     SELECT :run, :stage, group_name, counted, sum(count) FROM rollout_counts WHERE run = :before GROUP BY group_name, counted`,
    { run, before, stage: BEFORE_ITS_STAGES },
  );
  await forgetSeen(trx, before);
  return run;
}

async function forgetSeen(trx: Knex.Transaction, run: string): Promise<void> {
  await trx('rollout_counts').where({ run }).delete();
  await forgetAccounts(trx, run);
}

/** Deletes the number of compared calls of each account, because this number starts at 0 again after each look (comparison) of the guards. */
export async function forgetAccounts(trx: Knex.Transaction, run: string): Promise<void> {
  // Locks the rows in the order in which nodes write them, so that this statement cannot deadlock with those writes.
  const inOrder = 'SELECT account_id FROM rollout_accounts WHERE run = :run ORDER BY account_id FOR UPDATE';
  await trx.raw(`DELETE FROM rollout_accounts WHERE run = :run AND account_id IN (${inOrder})`, { run });
}

/**
 * Adds the calls of a node to the counts of all nodes. `perAccount` returns, by a rollout's name, how many calls of one account the guards
 * compare between two looks (comparisons). Rows are written in one order, so that nodes that write at the same time cannot deadlock. Counts
 * of a deleted run are deleted with it.
 */
export async function addSeen(
  database: Knex,
  seen: readonly SeenCall[],
  perAccount: (rollout: string) => number | undefined,
): Promise<void> {
  await database.transaction(async (trx) => {
    const left = await takeTurns(trx, seen, perAccount);
    const groups = new Map<string, { readonly place: object; readonly counts: Map<string, number> }>();
    for (const call of seen) {
      const { run, stage, group } = call;
      const key = `${run} ${stage} ${group}`;
      const counted = groups.get(key) ?? { place: { run, stage, group_name: group }, counts: new Map() };
      groups.set(key, counted);
      countForGuards(counted.counts, call, left(call));
    }
    const rows = [...groups.values()].flatMap(({ place, counts }) =>
      [...counts].map(([counted, count]) => ({ ...place, counted, count })),
    );
    await trx.raw(
      `INSERT INTO rollout_counts AS known (run, stage, group_name, counted, count)
       SELECT * FROM jsonb_to_recordset(:rows::jsonb)
         AS seen (run uuid, stage int, group_name text, counted text, count bigint)
       WHERE run IN (SELECT run FROM rollouts) ORDER BY run, stage, group_name, counted
       ON CONFLICT (run, stage, group_name, counted) DO UPDATE SET count = known.count + excluded.count`,
      { rows: JSON.stringify(rows) },
    );
  });
}

/** Counts the calls of each account. Returns a function that takes one call after the other and tells whether the guards compare it. */
async function takeTurns(
  trx: Knex.Transaction,
  seen: readonly SeenCall[],
  perAccount: (rollout: string) => number | undefined,
): Promise<(call: SeenCall) => boolean> {
  const isLimited = ({ name, group }: SeenCall) => group !== 'shadow' && perAccount(name) !== undefined;
  const turns = new Map<string, { readonly run: string; readonly account_id: string; calls: number }>();
  for (const { run, accountId } of seen.filter(isLimited)) {
    const turn = turns.get(run + accountId) ?? { run, account_id: accountId, calls: 0 };
    turns.set(run + accountId, turn);
    turn.calls += 1;
  }
  if (turns.size === 0) return () => true;
  const { rows } = await trx.raw<{ rows: { run: string; account_id: string; calls: number }[] }>(
    `INSERT INTO rollout_accounts AS known (run, account_id, calls)
     SELECT * FROM jsonb_to_recordset(:rows::jsonb) AS seen (run uuid, account_id uuid, calls int)
     WHERE run IN (SELECT run FROM rollouts) ORDER BY run, account_id
     ON CONFLICT (run, account_id) DO UPDATE SET calls = known.calls + excluded.calls RETURNING *`,
    { rows: JSON.stringify([...turns.values()]) },
  );
  // The number of calls that each account had made before the calls in `seen`.
  const before = new Map(
    rows.map((row) => [row.run + row.account_id, row.calls - (turns.get(row.run + row.account_id)?.calls ?? 0)]),
  );
  return (call) => {
    if (!isLimited(call)) return true;
    const key = call.run + call.accountId;
    const calls = before.get(key) ?? 0;
    before.set(key, calls + 1);
    return calls < (perAccount(call.name) ?? 0);
  };
}

/** Returns the counts of all nodes for a stage and group of a run. */
export type SeenOfRun = (stage: number, group: SeenCall['group']) => GuardCounts | undefined;

export async function readSeen(database: Knex, run: string): Promise<SeenOfRun> {
  const rows: { stage: number; group_name: string; counted: string; count: bigint }[] = await database(
    'rollout_counts',
  ).where({ run });
  const seen = new Map<string, Map<string, number>>();
  for (const { stage, group_name, counted, count } of rows) {
    const key = `${stage} ${group_name}`;
    seen.set(key, (seen.get(key) ?? new Map<string, number>()).set(counted, Number(count)));
  }
  return (stage, group) => seen.get(`${stage} ${group}`);
}

/** The progress of a rollout, as stored in Postgres. */
interface Placed {
  readonly shares: readonly number[];
  readonly stage: number;
}

/** Where a rollout continues after its stages were changed. */
interface Restaged {
  readonly stage: number;
  /** Whether the stages up to the current one are unchanged, so that the counts of these stages remain valid. */
  readonly isSameSoFar: boolean;
}

export function sharesOf({ stages }: Pick<Rollout, 'stages'>): readonly number[] {
  return stages.map(({ share }) => share);
}

export function hasStagesOf({ shares }: Pick<Placed, 'shares'>, rollout: Pick<Rollout, 'stages'>): boolean {
  return isDeepStrictEqual(shares, sharesOf(rollout));
}

/** Returns the stage at which a rollout with new stages continues: the last one with at most the current share of callers, or else the first. */
export function restage({ shares, stage }: Placed, rollout: Pick<Rollout, 'stages'>): Restaged {
  const next = sharesOf(rollout);
  if (stage <= next.length && isDeepStrictEqual(shares.slice(0, stage), next.slice(0, stage)))
    return { stage, isSameSoFar: true };
  const share = shares[stage - 1] ?? 0;
  const last = next.findLastIndex((each) => each <= share);
  return { stage: Math.max(last, 0) + 1, isSameSoFar: false };
}

/** How often a node writes that it watches a rollout. */
const NOTED_EVERY_MS = 5_000;

/** If no node watched a rollout for longer than this, the time does not count towards the stage. */
const UNWATCHED_MS = 30_000;

type Watched = Pick<RolloutRow, 'stage_since' | 'followed_at'>;

/**
 * Returns the new times of a rollout that this node watches; undefined while no write is due. Time in which no node watched does not count
 * towards the stage, nor does a jump of the database's clock. The time of a pause is excluded later, by the order `resume`.
 */
export function watchedAt(
  { status, stage_since, followed_at }: Watched & Pick<RolloutRow, 'status'>,
  now: Date,
): Watched | undefined {
  const passedMs = now.getTime() - followed_at.getTime();
  if (passedMs >= 0 && passedMs < NOTED_EVERY_MS) return undefined;
  const isUnwatched = passedMs < 0 || passedMs > UNWATCHED_MS;
  const shiftMs = isUnwatched && status === 'running' ? passedMs : 0;
  return { stage_since: new Date(stage_since.getTime() + shiftMs), followed_at: now };
}

/** Returns the start of the stage, moved forward by the time since the rollout's last change. The rollout has not progressed since that change. */
export function afterStandstill(
  { stage_since, changed_at }: Pick<RolloutRow, 'stage_since' | 'changed_at'>,
  now: Date,
) {
  return new Date(stage_since.getTime() + now.getTime() - changed_at.getTime());
}

export function progressOf({ status, stage, stage_since, looks }: RolloutRow) {
  return { status, stage, stageSinceMs: stage_since.getTime(), looks };
}
