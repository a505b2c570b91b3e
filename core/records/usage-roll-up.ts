import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { type Loop, onFirstFailure, startLoop } from '../base/loop';

interface UsageRollUpOptions {
  readonly database: Knex;
  readonly log: Logger;
}

/**
 * The age at which records are summed, because most calls have ended and been written by then. Queries read younger records one by one, and
 * also records in hours that a range covers in part.
 */
const YOUNGER_MS = 60_000;
/** The time range of usage records that one step sums, in ms. A longer range costs less per record. A process skips a range that another just summed. */
const AT_ONCE_MS = 60_000;
const LOOK_EVERY_MS = 10_000;
/** The maximum records summed at once, because writers of records wait meanwhile: 0.1 s for records of one account, 0.4 s for records of 500 accounts. */
const RECORDS_AT_ONCE = 10_000;

/** Repeatedly adds newer usage records to `usage_sums` (migrations/0003-usage-records.ts). Returns the loop, which the caller stops. */
export function startUsageRollUp({ database, log }: UsageRollUpOptions): Loop {
  const look = async (signal: AbortSignal) => {
    const { rows } = await database.raw<{ rows: { wanted: Date }[] }>(
      `SELECT now() - make_interval(secs => :younger::float8) AS wanted FROM usage_summed
       WHERE until < now() - make_interval(secs => :older::float8)`,
      { younger: YOUNGER_MS / 1_000, older: (YOUNGER_MS + AT_ONCE_MS) / 1_000 },
    );
    for (const { wanted } of rows) while (!signal.aborted && (await sumSomeUntil(database, wanted)));
  };
  const whenFailed = onFirstFailure((error) =>
    log.warn(
      { reason: String(error) },
      'hourly sums of usage cannot be updated; totals are read from the usage records meanwhile',
    ),
  );
  return startLoop(look, { everyMs: LOOK_EVERY_MS, atRestMs: 60_000, whenFailed });
}

/** Sums at most `most` records from before the time `wanted`. Returns whether more records from before that time remain. */
export async function sumSomeUntil(database: Knex, wanted: Date, most = RECORDS_AT_ONCE): Promise<boolean> {
  const { rows } = await database.raw<{ rows: { more: boolean }[] }>(
    'SELECT sum_usage_until(:wanted::timestamptz, :most::int) AS more',
    { wanted, most },
  );
  return rows[0]?.more === true;
}
