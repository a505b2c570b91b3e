import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { type Loop, startLoop } from '../base/loop';
import { metrics } from '../base/metrics';
import { formatUsd } from '../base/money';
import { unsentCredits } from '../ledger/outbox/credits';
import { FROZEN_FOR_EXCESS, type Stores, setAccountStatus, tellChangedAccounts } from './accounts';
import { pushCredit } from './credits';
import { raiseKeyExpiries } from './key-expiries';
import { revokeKey, tellChangedKeys } from './keys';
import { tellChangedScopes } from './scopes';

interface SweeperOptions extends Stores {
  readonly log: Logger;
  /** The excess (the cost of requests above their holds) in E8 above which the sweeper stops a key; undefined for never. See `excess` of system.config.yml. */
  readonly stopKeyAboveE8?: bigint;
  readonly everyMs?: number;
  /** The age in ms from which the sweeper sends a change. The process that wrote a younger change may still send that change itself. */
  readonly olderThanMs?: number;
}

const SWEEP_EVERY_MS = 5_000;
const OLDER_THAN_MS = 5_000;
/**
 * The age in ms above which the sweeper ignores credits, so that it need not read all of them. Older credits without an entry need no
 * sending: recovery restored them, or the ledger refused them.
 */
const YOUNGER_THAN_MS = 7 * 86_400_000;

/**
 * Starts the loop that sends changes of accounts, keys, budgets and credits to the ledger. A process wrote these changes to Postgres but ended
 * before it sent them. The loop also stops keys and accounts whose requests cost too much above their holds, and reports keys that expire
 * soon.
 */
export function startSweeper({
  log,
  everyMs = SWEEP_EVERY_MS,
  olderThanMs = OLDER_THAN_MS,
  stopKeyAboveE8,
  ...stores
}: SweeperOptions): Loop {
  /** The pause before the next sweep. It grows while sweeps find nothing to send. */
  let pauseMs = everyMs;
  const sweep = async () => {
    const accounts = await tellChangedAccounts(stores, olderThanMs);
    const keys = await tellChangedKeys(stores, olderThanMs);
    const scopes = await tellChangedScopes(stores, olderThanMs);
    const credits = await sendCredits(stores, olderThanMs);
    if (stopKeyAboveE8 !== undefined) await stopForExcess(stores, stopKeyAboveE8, log);
    await raiseKeyExpiries(stores.database, log);
    const isAtRest = accounts + keys + scopes + credits === 0;
    pauseMs = isAtRest ? Math.min(pauseMs * 2, 3 * everyMs) : everyMs;
    if (!isAtRest)
      log.warn(
        { accounts, keys, scopes, credits },
        'the sweeper sent missed changes of accounts, keys and budgets to the ledger',
      );
  };
  return startLoop(sweep, {
    everyMs: () => pauseMs,
    atRestMs: 60_000,
    whenFailed: (error) =>
      log.debug(
        { reason: String(error) },
        'changes of accounts, keys and budgets cannot be sent to the ledger; the sweeper retries',
      ),
  });
}

/**
 * Sends the credits that have no ledger entry in Postgres to the ledger. If such an entry is only on its way to Postgres, the ledger
 * recognizes the credit by its id.
 */
async function sendCredits(stores: Stores, olderThanMs: number): Promise<number> {
  const ids = await unsentCredits(stores.database, { after: firstIdOf(Date.now() - YOUNGER_THAN_MS), olderThanMs });
  for (const id of ids) await pushCredit(stores, id, 'sweeper');
  return ids.length;
}

/** Returns the smallest UUIDv7 of a time. UUIDv7 ids sort by creation time, so that a query can select by age. */
function firstIdOf(ms: number): string {
  const time = ms.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}

const stops = new Counter({
  name: 'tollgate_excess_stops_total',
  help: 'Keys revoked and accounts frozen because their requests cost more than their holds.',
  labelNames: ['of'],
  registers: [metrics],
});

const STOPPED_AT_ONCE = 100;

/**
 * The excess (cost above the holds) that freezes an account, as a multiple of the excess that stops a key. Customers could otherwise
 * replace stopped keys by new ones.
 */
const KEYS_OF_AN_ACCOUNT = 10n;

/**
 * Revokes active keys whose requests cost more than `aboveE8` above their holds. Freezes active accounts whose requests have exceeded their
 * holds by more than ten times `aboveE8` since the account was last unfrozen.
 */
async function stopForExcess(stores: Stores, aboveE8: bigint, log: Logger): Promise<void> {
  for (const { id, excess_e8: excessE8 } of await above(stores, 'api_keys', aboveE8)) {
    // Counts and logs the revocation or freeze before doing it. If the ledger fails after Postgres has the change, later sweeps no longer find the
    // key or account.
    stops.inc({ of: 'key' });
    log.warn({ keyId: id, excessUsd: formatUsd(excessE8) }, `the key was revoked ${BECAUSE}`);
    await revokeKey(stores, id, 'excess');
  }
  for (const { id, excess_e8: excessE8 } of await above(stores, 'accounts', aboveE8 * KEYS_OF_AN_ACCOUNT)) {
    stops.inc({ of: 'account' });
    log.warn({ accountId: id, excessUsd: formatUsd(excessE8) }, `the account was frozen ${BECAUSE}`);
    await setAccountStatus(stores, id, 'frozen', FROZEN_FOR_EXCESS);
  }
}

const BECAUSE = 'because its requests cost more than their holds; see docs/operating.md';

async function above(
  { database }: Stores,
  table: 'api_keys' | 'accounts',
  aboveE8: bigint,
): Promise<readonly { readonly id: string; readonly excess_e8: bigint }[]> {
  return database(table)
    .where({ status: 'active' })
    .where('excess_e8', '>', 0)
    .where('excess_e8', '>', aboveE8.toString())
    .orderBy('id')
    .limit(STOPPED_AT_ONCE)
    .select('id', 'excess_e8');
}
