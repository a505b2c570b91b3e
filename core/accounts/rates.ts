import type { Knex } from 'knex';
import { fail, type GatewayError } from '../base/errors';

const HOUR_MS = 3_600_000;

/** The section `keys` of system.config.yml. */
export interface KeyRates {
  readonly madePerDay: number;
  readonly madePerHour: number;
  /** The largest number of active keys of an account; undefined for no limit. */
  readonly maxKeys?: number | undefined;
  readonly requestsPerMinute: number;
}

/** A limit on an action of an account. A new window begins with the first action after the previous window has ended. */
interface Rate {
  readonly action: string;
  readonly most: number;
  readonly windowMs: number;
}

const COUNT = `
  INSERT INTO account_rates AS rate (account_id, action, window_started_at, made) VALUES (:accountId, :action, :now, 1)
  ON CONFLICT (account_id, action) DO UPDATE SET
    window_started_at = CASE WHEN rate.window_started_at <= :expired THEN excluded.window_started_at ELSE rate.window_started_at END,
    made = CASE WHEN rate.window_started_at <= :expired THEN 1 ELSE least(rate.made + 1, 1000000000) END
  RETURNING made, window_started_at AS "startedAt"`;

/** Counts an action of an account, across all processes. Returns 0 if the account may do it, otherwise the milliseconds to wait. */
async function countAction(database: Knex, accountId: string, { action, most, windowMs }: Rate, nowMs: number) {
  const { rows } = await database.raw<{ rows: { made: number; startedAt: Date }[] }>(COUNT, {
    accountId,
    action,
    now: new Date(nowMs),
    expired: new Date(nowMs - windowMs),
  });
  const [row] = rows;
  return row === undefined || row.made <= most ? 0 : Math.max(1, row.startedAt.getTime() + windowMs - nowMs);
}

function tooMany(waitMs: number, message: string): GatewayError {
  return fail('RATE_LIMITED', { retryAfterSeconds: Math.ceil(waitMs / 1_000), message });
}

/** Counts the creation of a sandbox. Retries are not counted. @throws RATE_LIMITED with the time to wait */
export async function limitCreates(database: Knex, accountId: string, nowMs: number): Promise<void> {
  const waitMs = await countAction(database, accountId, { action: 'sandbox', most: 60, windowMs: 60_000 }, nowMs);
  if (waitMs > 0)
    throw tooMany(waitMs, 'Too many sandboxes are being created. Retry later with the same idempotency key.');
}

/**
 * Counts the creation of a key or the rotation of its secret. An account may do both together `madePerDay` times a day. After that, it may
 * do them `madePerHour` times an hour, because each one leaves database rows.
 * @throws RATE_LIMITED with the time to wait
 */
export async function limitKeys(
  database: Knex,
  accountId: string,
  { madePerDay, madePerHour }: KeyRates,
  nowMs = Date.now(),
): Promise<void> {
  const count = (action: string, most: number, windowMs: number) =>
    countAction(database, accountId, { action, most, windowMs }, nowMs);
  if ((await count('key of the day', madePerDay, 24 * HOUR_MS)) === 0) return;
  const waitMs = await count('key of the hour', madePerHour, HOUR_MS);
  if (waitMs === 0) return;
  const message = `The account has made or rotated ${madePerDay} keys today, and ${madePerHour} more within an hour. Retry after \`Retry-After\`, or ask the operator to raise \`keys.madePerHour\`.`;
  throw tooMany(waitMs, message);
}
