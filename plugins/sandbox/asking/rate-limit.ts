import type { Knex } from 'knex';
import { fail } from '../../../core/errors';

const CREATES_PER_MINUTE = 60;
const WINDOW_MS = 60_000;

const COUNT = `
  INSERT INTO sandbox_create_rates AS rate (account_id, window_started_at, creates) VALUES (:accountId, :now, 1)
  ON CONFLICT (account_id) DO UPDATE SET
    window_started_at = CASE WHEN rate.window_started_at <= :expired THEN excluded.window_started_at ELSE rate.window_started_at END,
    creates = CASE WHEN rate.window_started_at <= :expired THEN 1 ELSE rate.creates + 1 END
  RETURNING creates, window_started_at AS "startedAt"`;

/**
 * Counts a new creation against the account's limit, which all processes share. Retries are not counted.
 * @throws RATE_LIMITED with the time to wait
 */
export async function limitCreates(database: Knex, accountId: string, nowMs: number): Promise<void> {
  const { rows } = await database.raw<{ rows: { creates: number; startedAt: Date }[] }>(COUNT, {
    accountId,
    now: new Date(nowMs),
    expired: new Date(nowMs - WINDOW_MS),
  });
  const [row] = rows;
  if (row === undefined || row.creates <= CREATES_PER_MINUTE) return;
  const waitMs = Math.max(0, row.startedAt.getTime() + WINDOW_MS - nowMs);
  throw fail('RATE_LIMITED', { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) });
}
