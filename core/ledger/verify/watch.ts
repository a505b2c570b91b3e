import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Counter, Gauge } from 'prom-client';
import { type Loop, startLoop } from '../../base/loop';
import { metrics } from '../../base/metrics';
import type { NewEvent } from '../../events/event';
import { raiseEvents } from '../../events/raise';
import { LedgerUnavailable } from '../ledger';
import { INVARIANTS, type Invariant, type Violation } from './invariants';
import { type VerifyOptions, verify, verifyOutbox } from './verify';

interface WatchOptions extends VerifyOptions {
  readonly log: Logger;
  /** How long the pause between two verifications of all accounts is, in ms. */
  readonly everyMs: number;
  /** The most accounts that are verified per second, so that verification costs little of the database's time. */
  readonly accountsPerSecond: number;
}

const violations = new Gauge({
  name: 'tollgate_ledger_violations',
  help: 'Violations of ledger invariants that the last complete pass over all accounts found.',
  labelNames: ['invariant'],
  aggregator: 'max',
  registers: [metrics],
});
const verifiedAt = new Gauge({
  name: 'tollgate_ledger_verified_at_seconds',
  help: 'Unix time when the last complete pass over all accounts ended.',
  aggregator: 'max',
  registers: [metrics],
});
const accountsVerified = new Counter({
  name: 'tollgate_ledger_verified_accounts_total',
  help: 'Accounts whose invariants were checked.',
  registers: [metrics],
});
const entriesVerified = new Counter({
  name: 'tollgate_ledger_verified_entries_total',
  help: 'Entries that were checked.',
  registers: [metrics],
});

const ACCOUNTS_AT_ONCE = 20;
const ENTRIES_PER_SECOND = 50_000;
const FIRST_AFTER_MS = 30_000;
const DAYS_OF_RECORDS = 1;
/** How many violations of one verification of all accounts are logged. More lines would not help the operator, and the metric has the number. */
const LINES = 50;

/** Verifies all accounts repeatedly and slowly, and logs violations. Returns the loop, so that the caller can stop it. */
export function startWatch(options: WatchOptions): Loop {
  const { log, everyMs } = options;
  return startLoop((signal) => pass(options, signal), {
    everyMs,
    firstAfterMs: Math.min(everyMs, FIRST_AFTER_MS),
    whenFailed: (error) => {
      const level = error instanceof LedgerUnavailable ? 'debug' : 'warn';
      log[level]({ reason: String(error) }, 'the ledger could not be verified; the verification is retried');
    },
  });
}

async function pass(options: WatchOptions, signal: AbortSignal): Promise<void> {
  const { log, database, accountsPerSecond } = options;
  const counts = new Map<Invariant, number>();
  let lines = 0;
  const report = async (found: readonly Violation[]) => {
    await raiseEvents(database, log, found.slice(0, LINES).map(contradiction));
    for (const each of found) {
      counts.set(each.invariant, (counts.get(each.invariant) ?? 0) + 1);
      lines += 1;
      if (lines <= LINES)
        log.error(
          { ...each, holds: INVARIANTS[each.invariant] },
          'an invariant of the ledger is violated; see docs/operating.md',
        );
    }
  };
  await report(await verifyOutbox(options));
  let after: string | undefined;
  do {
    const begun = Date.now();
    const done = await verify(options, { limit: ACCOUNTS_AT_ONCE, after, days: DAYS_OF_RECORDS });
    await report(done.violations);
    accountsVerified.inc(done.accounts);
    entriesVerified.inc(done.entries);
    after = done.next;
    const minMs = Math.max(done.accounts / accountsPerSecond, done.entries / ENTRIES_PER_SECOND) * 1_000;
    await sleep(Math.max(0, minMs - (Date.now() - begun)), undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
  } while (after !== undefined);
  for (const invariant of Object.keys(INVARIANTS) as Invariant[])
    violations.set({ invariant }, counts.get(invariant) ?? 0);
  verifiedAt.setToCurrentTime();
}

/** Returns the event of a violation. One that lasts has one event a day, whichever process verifies the account. */
function contradiction({ expected, found, ...where }: Violation): NewEvent {
  const { invariant, accountId, keyId, scope, rid } = where;
  const day = new Date().toISOString().slice(0, 10);
  return {
    type: 'ledger.contradiction',
    once: [day, invariant, accountId, keyId, scope, rid].join(' '),
    data: { ...where, holds: INVARIANTS[invariant], expected, found },
  };
}
