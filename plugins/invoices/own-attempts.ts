import type { Knex } from 'knex';
import type { AttemptCause } from '../../core/catalog/attempt-fields';
import { boundsOf, type Days } from './report';

/** The recorded count of one meter on one day, for one model and one recorded cause of attempts (such as `answered` or `mirror`). */
export interface OwnCount {
  readonly day: string;
  /** The requested model. */
  readonly model: string;
  /** The model named in the upstream's answer; null where the answer named none. */
  readonly answered: string | null;
  readonly cause: AttemptCause;
  readonly meter: string;
  readonly count: bigint;
  /** The part of `count` from attempts whose usage the upstream did not reliably report. */
  readonly estimated: bigint;
}

/** The attempts of one day at one upstream that have the same model and the same recorded cause (such as `answered` or `mirror`). */
export interface OwnAttempts {
  readonly day: string;
  readonly upstream: string;
  readonly model: string;
  readonly cause: AttemptCause;
  readonly attempts: bigint;
  /**
   * The number of attempts whose usage the upstream did not reliably report, although the vendor may have charged it. The vendor's count
   * may therefore differ from the recorded count.
   */
  readonly uncertain: bigint;
  /** The cost of the attempts in 1e-14 USD. */
  readonly costE14: bigint;
}

/**
 * Whether the vendor may have charged for usage that it did not report. An attempt that sent nothing costs nothing, and vendors do
 * not charge for error answers.
 */
const IS_UNCERTAIN = `(NOT is_reported AND outcome NOT IN ('connect_failed', 'status')) OR cause = 'unknown'`;

const DAY = `to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')`;

/** Sums the usage of an upstream's attempts by day, model, cause and meter. */
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

/** Sums the cost of some upstreams' attempts by day, upstream, model and cause. */
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

/** Sums what customers were charged for calls that these upstreams answered, by day, in 1e-8 USD. */
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

/** Counts the calls whose process was killed, by day and requested model. They have no attempts, and a vendor may have charged for any of them. */
export async function countExpiredCalls(
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

/** A row whose numbers are texts, because in that form Postgres and PGlite return sums exactly. */
type Texts<T> = { readonly [K in keyof T]: T[K] extends bigint ? string : T[K] };
