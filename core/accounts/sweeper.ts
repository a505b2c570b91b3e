import type { Logger } from 'pino';
import { unsentCredits } from '../ledger/outbox/credits';
import { type Loop, startLoop } from '../loop';
import { type Stores, tellChangedAccounts } from './accounts';
import { pushCredit } from './credits';
import { freezeForExcess } from './excess';
import { tellChangedKeys } from './keys';

export interface SweeperOptions extends Stores {
  readonly log: Logger;
  /** See `excess` of system.config.yml. */
  readonly freezeAboveE8?: bigint;
  readonly everyMs?: number;
  /** What is younger may still be told by whoever wrote it. */
  readonly olderThanMs?: number;
}

const SWEEP_EVERY_MS = 5_000;
const OLDER_THAN_MS = 5_000;
/** What is older was brought by a recovery, or is refused for good: nobody looks at every credit there ever was. */
const YOUNGER_THAN_MS = 7 * 86_400_000;

/**
 * Brings to the ledger what is in the database and what the process that wrote it did not live to tell the ledger; freezes accounts
 * for what their requests cost above their holds.
 */
export function startSweeper({
  log,
  everyMs = SWEEP_EVERY_MS,
  olderThanMs = OLDER_THAN_MS,
  freezeAboveE8,
  ...stores
}: SweeperOptions): Loop {
  const sweep = async () => {
    const accounts = await tellChangedAccounts(stores, olderThanMs);
    const keys = await tellChangedKeys(stores, olderThanMs);
    const credits = await sendCredits(stores, olderThanMs);
    if (freezeAboveE8 !== undefined) await freezeForExcess(stores, freezeAboveE8, log);
    if (accounts + keys + credits > 0)
      log.warn({ accounts, keys, credits }, 'the sweeper sent missed changes of accounts and keys to the ledger');
  };
  return startLoop(sweep, {
    everyMs,
    whenFailed: (error) =>
      log.debug(
        { reason: String(error) },
        'changes of accounts and keys cannot be sent to the ledger; the sweeper retries',
      ),
  });
}

/** A credit whose entry is only on its way is recognised by its id. */
async function sendCredits(stores: Stores, olderThanMs: number): Promise<number> {
  const ids = await unsentCredits(stores.database, { after: firstIdOf(Date.now() - YOUNGER_THAN_MS), olderThanMs });
  for (const id of ids) await pushCredit(stores, id, 'sweeper');
  return ids.length;
}

/** The smallest UUIDv7 of a time: ids are in the order in which they were made. */
function firstIdOf(ms: number): string {
  const time = ms.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}
