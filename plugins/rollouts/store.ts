import type { Knex } from 'knex';
import { newId } from '../../core/ids';
import type { Rollout } from '../../core/rollouts/rollout';
import { type GroupCounts, NOTHING_SEEN, type SlotCounts, type Times } from './counts';
import { BEFORE_ITS_STAGES, type Looks, type Status } from './decide';
import { sharesOf } from './restage';
import type { SeenGroup, StageGroup } from './tally';

/** The row of a rollout in Postgres. */
export interface RolloutRow {
  readonly name: string;
  readonly definition: string;
  readonly run: string;
  readonly status: Status;
  readonly stage: number;
  /** The shares of all stages, as configured on the node that began or restaged the rollout. */
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

/** Does the work in a transaction unless another process is changing rollouts. Returns whether the work was done. */
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

/** Does the work in a transaction; waits for the lock. */
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

/** Begins a run at the first stage and deletes the counts of the rollout's run before. */
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

/** Begins another run of a rollout. The counts of the run before move to the stage `BEFORE_ITS_STAGES`. */
export async function carrySeen(trx: Knex.Transaction, before: string): Promise<string> {
  const run = newId();
  const places = { run, before, stage: BEFORE_ITS_STAGES };
  await trx.raw(CARRY_ARMS, places);
  await trx.raw(CARRY_SLOTS, places);
  for (const { table, count } of Object.values(TIMES)) await trx.raw(carryTimes(table, count), places);
  await forgetSeen(trx, before);
  return run;
}

async function forgetSeen(trx: Knex.Transaction, run: string): Promise<void> {
  for (const table of ['rollout_arms', 'rollout_slots', 'rollout_first_tokens', 'rollout_whole_answers'])
    await trx(table).where({ run }).delete();
}

const CARRY_ARMS = `
  INSERT INTO rollout_arms (run, stage, arm, calls, errors, hurt, cost_e8, charged, log_cost, log_cost_squares)
  SELECT :run, :stage, arm, sum(calls), sum(errors), sum(hurt), sum(cost_e8), sum(charged), sum(log_cost),
    sum(log_cost_squares)
  FROM rollout_arms WHERE run = :before GROUP BY arm`;

const CARRY_SLOTS = `
  INSERT INTO rollout_slots (run, stage, slot, calls, errors, charged, log_cost, streams, log_first_token, answers, log_whole)
  SELECT :run, :stage, slot, sum(calls), sum(errors), sum(charged), sum(log_cost), sum(streams), sum(log_first_token),
    sum(answers), sum(log_whole)
  FROM rollout_slots WHERE run = :before GROUP BY slot`;

const carryTimes = (table: string, count: string) => `
  INSERT INTO ${table} (run, stage, arm, bucket, ${count})
  SELECT :run, :stage, arm, bucket, sum(${count}) FROM ${table} WHERE run = :before GROUP BY arm, bucket`;

/** The table and column of each kind of times. */
const TIMES = {
  firstTokens: { table: 'rollout_first_tokens', count: 'streams' },
  wholeAnswers: { table: 'rollout_whole_answers', count: 'answers' },
} as const;

/**
 * Adds a node's counts to those of all nodes. Rows are written in one order, so that nodes that write at the same time cannot
 * deadlock. Counts of a deleted run are deleted with it.
 */
export async function addSeen(database: Knex, seen: readonly SeenGroup[]): Promise<void> {
  const arms = seen.map(({ run, stage, group: arm, counts }) => {
    const { firstTokens: _, wholeAnswers: __, slots: ___, costE8, ...numbers } = counts;
    return { run, stage, arm, ...numbers, costE8: costE8.toString() };
  });
  const slots = seen.flatMap(({ run, stage, counts }) =>
    [...counts.slots].map(([slot, each]) => ({ run, stage, slot, ...each })),
  );
  await database.transaction(async (trx) => {
    await trx.raw(ADD_ARMS, { rows: JSON.stringify(arms) });
    if (slots.length > 0) await trx.raw(ADD_SLOTS, { rows: JSON.stringify(slots) });
    for (const kind of ['firstTokens', 'wholeAnswers'] as const) {
      const { table, count } = TIMES[kind];
      const rows = seen.flatMap(({ run, stage, group: arm, counts }) =>
        [...counts[kind]].map(([bucket, calls]) => ({ run, stage, arm, bucket, calls })),
      );
      if (rows.length > 0) await trx.raw(addTimes(table, count), { rows: JSON.stringify(rows) });
    }
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

const ADD_SLOTS = `
  INSERT INTO rollout_slots AS known
    (run, stage, slot, calls, errors, charged, log_cost, streams, log_first_token, answers, log_whole)
  SELECT run, stage, slot, calls, errors, charged, "logCost", streams, "logFirstToken", answers, "logWhole"
  FROM jsonb_to_recordset(:rows::jsonb) AS seen (run uuid, stage int, slot int, calls bigint, errors bigint,
    charged bigint, "logCost" float8, streams bigint, "logFirstToken" float8, answers bigint, "logWhole" float8)
  WHERE run IN (SELECT run FROM rollouts)
  ORDER BY run, stage, slot
  ON CONFLICT (run, stage, slot) DO UPDATE SET calls = known.calls + excluded.calls,
    errors = known.errors + excluded.errors, charged = known.charged + excluded.charged,
    log_cost = known.log_cost + excluded.log_cost, streams = known.streams + excluded.streams,
    log_first_token = known.log_first_token + excluded.log_first_token, answers = known.answers + excluded.answers,
    log_whole = known.log_whole + excluded.log_whole`;

const addTimes = (table: string, count: string) => `
  INSERT INTO ${table} AS known (run, stage, arm, bucket, ${count})
  SELECT run, stage, arm, bucket, calls
  FROM jsonb_to_recordset(:rows::jsonb) AS seen (run uuid, stage int, arm text, bucket int, calls bigint)
  WHERE run IN (SELECT run FROM rollouts)
  ORDER BY run, stage, arm, bucket
  ON CONFLICT (run, stage, arm, bucket) DO UPDATE SET ${count} = known.${count} + excluded.${count}`;

/** The group of a row; its column is named `arm`. */
interface ByGroup extends Omit<StageGroup, 'group'> {
  readonly arm: StageGroup['group'];
}

interface GroupRow extends ByGroup {
  readonly calls: bigint;
  readonly errors: bigint;
  readonly hurt: bigint;
  readonly cost_e8: bigint;
  readonly charged: bigint;
  readonly log_cost: number;
  readonly log_cost_squares: number;
}

interface SlotRow extends Pick<StageGroup, 'run' | 'stage'> {
  readonly slot: number;
  readonly calls: bigint;
  readonly errors: bigint;
  readonly charged: bigint;
  readonly log_cost: number;
  readonly streams: bigint;
  readonly log_first_token: number;
  readonly answers: bigint;
  readonly log_whole: number;
}

interface TimeRow extends ByGroup {
  readonly bucket: number;
  readonly calls: bigint;
}

/** Returns the counts of all nodes for a stage and group of a run. */
export type SeenOfRun = (stage: number, group: StageGroup['group']) => GroupCounts | undefined;

export async function readSeen(database: Knex, run: string): Promise<SeenOfRun> {
  const arms: GroupRow[] = await database<GroupRow>('rollout_arms').where({ run });
  const [firstTokens, wholeAnswers] = [
    await readTimes(database, run, 'firstTokens'),
    await readTimes(database, run, 'wholeAnswers'),
  ];
  const slots = await readSlots(database, run);
  const seen = new Map<string, GroupCounts>();
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
      wholeAnswers: wholeAnswers.get(key) ?? NOTHING_SEEN.wholeAnswers,
      slots: row.arm === 'control' ? (slots.get(row.stage) ?? NOTHING_SEEN.slots) : NOTHING_SEEN.slots,
    });
  }
  return (stage, group) => seen.get(`${stage} ${group}`);
}

/** Reads the slots of the control group, by stage. */
async function readSlots(database: Knex, run: string): Promise<ReadonlyMap<number, GroupCounts['slots']>> {
  const rows: SlotRow[] = await database<SlotRow>('rollout_slots').where({ run });
  const slots = new Map<number, Map<number, SlotCounts>>();
  for (const row of rows) {
    const known = slots.get(row.stage) ?? new Map<number, SlotCounts>();
    slots.set(row.stage, known);
    known.set(row.slot, {
      calls: Number(row.calls),
      errors: Number(row.errors),
      charged: Number(row.charged),
      logCost: row.log_cost,
      streams: Number(row.streams),
      logFirstToken: row.log_first_token,
      answers: Number(row.answers),
      logWhole: row.log_whole,
    });
  }
  return slots;
}

/** Reads one kind of times, by stage and group. */
async function readTimes(database: Knex, run: string, kind: keyof typeof TIMES): Promise<ReadonlyMap<string, Times>> {
  const { table, count } = TIMES[kind];
  const rows: TimeRow[] = await database(table).select('stage', 'arm', 'bucket', { calls: count }).where({ run });
  const times = new Map<string, Map<number, number>>();
  for (const { stage, arm, bucket, calls } of rows) {
    const key = `${stage} ${arm}`;
    times.set(key, (times.get(key) ?? new Map<number, number>()).set(bucket, Number(calls)));
  }
  return times;
}
