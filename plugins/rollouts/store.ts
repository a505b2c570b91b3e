import type { Knex } from 'knex';
import { newId } from '../../core/ids';
import type { Rollout } from '../../core/rollout';
import { type ArmCounts, NOTHING_SEEN } from './counts';
import type { Looks, Status } from './decide';
import type { Group, SeenGroup } from './tally';

/** What is written down of a rollout. */
export interface RolloutRow {
  readonly name: string;
  readonly definition: string;
  readonly run: string;
  readonly status: Status;
  readonly stage: number;
  readonly stage_since: Date;
  readonly changed_at: Date;
  /** Why it is not going on. */
  readonly reason: string | null;
  readonly looks: Looks;
}

export async function readRows(database: Knex): Promise<ReadonlyMap<string, RolloutRow>> {
  const rows: RolloutRow[] = await database<RolloutRow>('rollouts').select();
  return new Map(rows.map((row) => [row.name, row]));
}

/** Any number: who changes a rollout, decision or operator, does it alone. */
const LOCK = 0x70_6c_72;

/** Does the work in a transaction, if nobody else is changing rollouts at the moment. */
export async function unlessOtherDoes(database: Knex, work: (trx: Knex.Transaction) => Promise<void>): Promise<void> {
  await database.transaction(async (trx) => {
    const { rows } = await trx.raw<{ rows: { mine: boolean }[] }>('SELECT pg_try_advisory_xact_lock(?) AS mine', [
      LOCK,
    ]);
    if (rows[0]?.mine === true) await work(trx);
  });
}

/** The same for somebody who waits. */
export function alone<T>(database: Knex, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  return database.transaction(async (trx) => {
    await trx.raw('SELECT pg_advisory_xact_lock(?)', [LOCK]);
    return work(trx);
  });
}

/** The clock all nodes go by. */
export async function readNow(database: Knex): Promise<Date> {
  const { rows } = await database.raw<{ rows: { now: Date }[] }>('SELECT clock_timestamp() AS now');
  return rows[0]?.now ?? new Date();
}

/** From its first stage; what was seen of its run before is forgotten. */
export async function beginRun(trx: Knex.Transaction, { name, definition }: Rollout, now: Date): Promise<RolloutRow> {
  const before: RolloutRow | undefined = await trx<RolloutRow>('rollouts').where({ name }).first();
  if (before !== undefined) {
    for (const table of ['rollout_arms', 'rollout_first_tokens']) await trx(table).where({ run: before.run }).delete();
  }
  const row = { name, definition, run: newId(), status: 'running', stage: 1, looks: {}, reason: null } as const;
  const begun: RolloutRow = { ...row, stage_since: now, changed_at: now };
  await trx('rollouts')
    .insert({ ...begun, looks: '{}' })
    .onConflict('name')
    .merge();
  return begun;
}

export async function updateRow(trx: Knex.Transaction, row: RolloutRow, change: Partial<RolloutRow>): Promise<void> {
  const looks = change.looks === undefined ? {} : { looks: JSON.stringify(change.looks) };
  await trx('rollouts')
    .where({ name: row.name })
    .update({ ...change, ...looks });
}

/**
 * Adds what a node has seen to what all have. In one order, so that nodes that write at the same time wait for each other and never
 * in a circle. What belongs to a run that is forgotten is forgotten with it.
 */
export async function addSeen(database: Knex, seen: readonly SeenGroup[]): Promise<void> {
  const arms = seen.map(({ run, stage, arm, counts }) => {
    const { firstTokens: _, costE8, ...numbers } = counts;
    return { run, stage, arm, ...numbers, costE8: costE8.toString() };
  });
  const times = seen.flatMap(({ run, stage, arm, counts }) =>
    [...counts.firstTokens].map(([bucket, streams]) => ({ run, stage, arm, bucket, streams })),
  );
  await database.transaction(async (trx) => {
    await trx.raw(ADD_ARMS, { rows: JSON.stringify(arms) });
    if (times.length > 0) await trx.raw(ADD_TIMES, { rows: JSON.stringify(times) });
  });
}

const ADD_ARMS = `
  INSERT INTO rollout_arms AS known
    (run, stage, arm, calls, errors, hurt, cost_e8, charged, log_cost, log_cost_squares)
  SELECT run, stage, arm, calls, errors, hurt, "costE8", charged, "logCost", "logCostSquares"
  FROM jsonb_to_recordset(:rows::jsonb) AS seen (run uuid, stage int, arm text, calls bigint, errors bigint, hurt bigint,
    "costE8" bigint, charged bigint, "logCost" float8, "logCostSquares" float8)
  WHERE run IN (SELECT run FROM rollouts)
  ORDER BY run, stage, arm
  ON CONFLICT (run, stage, arm) DO UPDATE SET calls = known.calls + excluded.calls,
    errors = known.errors + excluded.errors, hurt = known.hurt + excluded.hurt,
    cost_e8 = known.cost_e8 + excluded.cost_e8, charged = known.charged + excluded.charged,
    log_cost = known.log_cost + excluded.log_cost,
    log_cost_squares = known.log_cost_squares + excluded.log_cost_squares`;

const ADD_TIMES = `
  INSERT INTO rollout_first_tokens AS known (run, stage, arm, bucket, streams)
  SELECT run, stage, arm, bucket, streams
  FROM jsonb_to_recordset(:rows::jsonb) AS seen (run uuid, stage int, arm text, bucket int, streams bigint)
  WHERE run IN (SELECT run FROM rollouts)
  ORDER BY run, stage, arm, bucket
  ON CONFLICT (run, stage, arm, bucket) DO UPDATE SET streams = known.streams + excluded.streams`;

interface ArmRow extends Group {
  readonly calls: bigint;
  readonly errors: bigint;
  readonly hurt: bigint;
  readonly cost_e8: bigint;
  readonly charged: bigint;
  readonly log_cost: number;
  readonly log_cost_squares: number;
}

interface TimeRow extends Group {
  readonly bucket: number;
  readonly streams: bigint;
}

/** What all nodes have seen of a run: by stage and group. */
export type SeenOfRun = (stage: number, arm: Group['arm']) => ArmCounts | undefined;

export async function readSeen(database: Knex, run: string): Promise<SeenOfRun> {
  const arms: ArmRow[] = await database<ArmRow>('rollout_arms').where({ run });
  const times: TimeRow[] = await database<TimeRow>('rollout_first_tokens').where({ run });
  const firstTokens = new Map<string, Map<number, number>>();
  for (const { stage, arm, bucket, streams } of times) {
    const key = `${stage} ${arm}`;
    firstTokens.set(key, (firstTokens.get(key) ?? new Map<number, number>()).set(bucket, Number(streams)));
  }
  const seen = new Map<string, ArmCounts>();
  for (const row of arms) {
    const key = `${row.stage} ${row.arm}`;
    seen.set(key, {
      calls: Number(row.calls),
      errors: Number(row.errors),
      hurt: Number(row.hurt),
      costE8: row.cost_e8,
      charged: Number(row.charged),
      logCost: row.log_cost,
      logCostSquares: row.log_cost_squares,
      firstTokens: firstTokens.get(key) ?? NOTHING_SEEN.firstTokens,
    });
  }
  return (stage, arm) => seen.get(`${stage} ${arm}`);
}
