import type { Knex } from 'knex';
import type { AttemptCause } from '../../../core/catalog/attempt-fields';
import { boundsOf, type Days } from './days';

/** Counts of one meter, of attempts with one cause at one model on one day. */
export interface OwnCount {
  readonly day: string;
  /** The model that was asked. */
  readonly model: string;
  /** As the upstream's answer named it; null where it did not. */
  readonly answered: string | null;
  readonly cause: AttemptCause;
  readonly meter: string;
  readonly count: bigint;
  /** How much of it is estimated. */
  readonly estimated: bigint;
}

/** Attempts with one cause at one model on one day. */
export interface OwnAttempts {
  readonly day: string;
  readonly upstream: string;
  readonly model: string;
  readonly cause: AttemptCause;
  readonly attempts: bigint;
  /** Those whose usage the upstream may have charged without reporting it: the vendor may count something else. */
  readonly uncertain: bigint;
  /** In 1e-14 USD. */
  readonly costE14: bigint;
}

/**
 * An attempt that sent nothing costs nothing, and vendors do not charge for answers that are errors. Everything else that was not
 * reported may have been charged.
 */
const IS_UNCERTAIN = `(NOT is_reported AND outcome NOT IN ('connect_failed', 'status')) OR cause = 'unknown'`;

const DAY = `to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')`;

/** Sums of what the attempts of an upstream used, by day, model, cause and meter. */
export async function sumCounts(database: Knex, upstream: string, days: Days): Promise<readonly OwnCount[]> {
  const { rows } = await database.raw<{ rows: Texts<OwnCount>[] }>(
    `SELECT ${DAY} AS day, model, pass->>'model' AS answered, cause, meter.key AS meter,
       sum(meter.value::numeric)::text AS count,
       coalesce(sum(meter.value::numeric) FILTER (WHERE ${IS_UNCERTAIN}), 0)::text AS estimated
     FROM upstream_attempts
     CROSS JOIN LATERAL jsonb_array_elements(passes) AS pass
     CROSS JOIN LATERAL jsonb_each_text(pass - '{model,tier,speed,geo}'::text[]) AS meter
     WHERE upstream = :upstream AND created_at >= :start AND created_at < :end
     GROUP BY 1, 2, 3, 4, 5`,
    { upstream, ...boundsOf(days) },
  );
  return rows.map((row) => ({ ...row, count: BigInt(row.count), estimated: BigInt(row.estimated) }));
}

/** Sums of what the attempts of some upstreams cost, by day, upstream, model and cause. */
export async function sumAttempts(
  database: Knex,
  upstreams: readonly string[],
  days: Days,
): Promise<readonly OwnAttempts[]> {
  const { rows } = await database.raw<{ rows: Texts<OwnAttempts>[] }>(
    `SELECT ${DAY} AS day, upstream, model, cause, count(*)::text AS attempts,
       count(*) FILTER (WHERE ${IS_UNCERTAIN})::text AS uncertain, sum(cost_e14)::text AS "costE14"
     FROM upstream_attempts
     WHERE upstream IN (SELECT jsonb_array_elements_text(:upstreams::jsonb)) AND created_at >= :start AND created_at < :end
     GROUP BY 1, 2, 3, 4`,
    { upstreams: JSON.stringify(upstreams), ...boundsOf(days) },
  );
  return rows.map((row) => ({
    ...row,
    attempts: BigInt(row.attempts),
    uncertain: BigInt(row.uncertain),
    costE14: BigInt(row.costE14),
  }));
}

/** What customers were charged for calls that these upstreams answered, by day, in 1e-8 USD. */
export async function sumCharges(
  database: Knex,
  upstreams: readonly string[],
  days: Days,
): Promise<ReadonlyMap<string, bigint>> {
  const { rows } = await database.raw<{ rows: { day: string; charged: string }[] }>(
    `SELECT ${DAY} AS day, sum(cost_e8)::text AS charged FROM usage_records
     WHERE upstream IN (SELECT jsonb_array_elements_text(:upstreams::jsonb)) AND created_at >= :start AND created_at < :end
     GROUP BY 1`,
    { upstreams: JSON.stringify(upstreams), ...boundsOf(days) },
  );
  return new Map(rows.map(({ day, charged }) => [day, BigInt(charged)]));
}

/**
 * Calls whose process was killed, by day and by the model that was asked for: they have no attempts, and a vendor may have charged for
 * any of them.
 */
export async function countExpired(
  database: Knex,
  days: Days,
): Promise<readonly { day: string; model: string; calls: bigint }[]> {
  const { rows } = await database.raw<{ rows: { day: string; model: string; calls: string }[] }>(
    `SELECT ${DAY} AS day, coalesce(model, model_requested, '') AS model, count(*)::text AS calls FROM usage_records
     WHERE billing = 'expired' AND created_at >= :start AND created_at < :end GROUP BY 1, 2`,
    boundsOf(days) as unknown as Record<string, Date>,
  );
  return rows.map((row) => ({ ...row, calls: BigInt(row.calls) }));
}

/** A row whose numbers are texts, as Postgres and PGlite both give sums exactly. */
type Texts<T> = { readonly [K in keyof T]: T[K] extends bigint ? string : T[K] };
