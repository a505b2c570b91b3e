import type { Logger } from 'pino';
import { tellChangedKeys } from './account-keys';
import { type Stores, tellChangedAccounts } from './accounts';
import { pushCredit } from './credits';
import { startLoop } from './loop';

/** Brings to the ledger what is in the database and what the process that wrote it did not live to tell the ledger. */
export interface Sweeper {
  stop(): Promise<void>;
}

export interface SweeperOptions extends Stores {
  readonly log: Logger;
  readonly everyMs?: number;
  /** What is younger may still be told by whoever wrote it. */
  readonly olderThanMs?: number;
}

const SWEEP_EVERY_MS = 5_000;
const OLDER_THAN_MS = 5_000;
/** What is older was brought by a recovery, or is refused for good: nobody looks at every credit there ever was. */
const YOUNGER_THAN_MS = 7 * 86_400_000;

export function startSweeper({
  log,
  everyMs = SWEEP_EVERY_MS,
  olderThanMs = OLDER_THAN_MS,
  ...stores
}: SweeperOptions): Sweeper {
  const sweep = async () => {
    const accounts = await tellChangedAccounts(stores, olderThanMs);
    const keys = await tellChangedKeys(stores, olderThanMs);
    const credits = await sendCredits(stores, olderThanMs);
    if (accounts + keys + credits > 0) log.warn({ accounts, keys, credits }, 'the ledger was told of changes again');
  };
  return {
    stop: startLoop(sweep, everyMs, (error) =>
      log.debug({ reason: String(error) }, 'changes cannot be told to the ledger now'),
    ),
  };
}

/** A credit whose entry is only on its way is recognised by its id. */
async function sendCredits(stores: Stores, olderThanMs: number): Promise<number> {
  const { rows } = await stores.database.raw<{ rows: { id: string }[] }>(
    `SELECT credit.id::text AS id FROM credits AS credit
     WHERE credit.id > :since::uuid AND credit.created_at < now() - make_interval(secs => :seconds::float8)
       AND credit.dropped_posted_e8 IS NULL AND NOT EXISTS (
         SELECT 1 FROM ledger_entries AS entry
         WHERE entry.account_id = credit.account_id AND entry.rid = credit.id AND entry.kind = 'credit')
     ORDER BY credit.id LIMIT 500`,
    { since: firstIdOf(Date.now() - YOUNGER_THAN_MS), seconds: olderThanMs / 1_000 },
  );
  for (const { id } of rows) await pushCredit(stores, id, 'sweeper');
  return rows.length;
}

/** The smallest UUIDv7 of a time: ids are in the order in which they were made. */
function firstIdOf(ms: number): string {
  const time = ms.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}
