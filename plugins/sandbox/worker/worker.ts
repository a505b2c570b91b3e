import type { Knex } from 'knex';
import { onFirstFailure, startLoop } from '../../../core/base/loop';
import type { Stop } from '../../../core/base/resources';
import { safeErrorFields } from '../../../core/base/safe-error';
import type { Ledger, Payer } from '../../../core/ledger/ledger';
import type { SandboxService } from '../service';
import { checkInvariants, StrayHolds } from '../store/audit';
import { forgetEnded } from '../store/queries';
import { forgetQuotes, withdraw } from '../store/quotes';
import { instanceTags } from '../suppliers/tags';
import {
  invariantsBroken,
  lossesStopped,
  orphansFound,
  showTotals,
  silentPlaceSandboxes,
  supplierCallSeconds,
  supplierCalls,
  sweepsStopped,
} from './metrics';
import { areTooManyGone, cleanUp, OrphanSweep } from './orphans';
import { LOOK_EVERY_MS, startReconciler } from './reconciler';
import type { SupplierCall } from './step-context';

const ADMISSIONS_EVERY_MS = 5_000;
/** How long a requested sandbox may wait until the gateway accepts it, in milliseconds. Then its creation is cancelled. */
const ADMISSION_WITHIN_MS = 60_000;
const INVARIANTS_EVERY_MS = 300_000;
const CLEANUP_EVERY_MS = 5_000;
const FORGET_EVERY_MS = 300_000;
const REPORT_EVERY_MS = 5_000;
const TOTALS_EVERY_MS = 5_000;
const DAY_MS = 86_400_000;
/** How long the loops that read Postgres pause while no sandbox is open and none has changed for a minute. A change wakes them. */
const IDLE_EVERY_MS = 10_000;
const IDLE_AFTER_MS = 60_000;
/** How long the loops that read Postgres pause while no sandbox is open and the whole process is idle, in milliseconds. */
const IDLE_AT_REST_EVERY_MS = 60_000;

/** Starts the loops that maintain sandboxes. They run in processes with `ROLE` `all` or `worker`. Any number of these processes may run at once. */
export function startWorker(
  service: SandboxService,
  { environment, endedDays }: { readonly environment: string; readonly endedDays?: number | undefined },
): Stop {
  const { database, gateway, log, timings, changes, drivers, places, now } = service;
  let openSandboxes = 0;
  let changedAtMs = Number.NEGATIVE_INFINITY;
  const isIdle = () => openSandboxes === 0 && performance.now() - changedAtMs > IDLE_AFTER_MS;
  const unlessIdle = (everyMs: number) => () => (isIdle() ? Math.max(everyMs, IDLE_EVERY_MS) : everyMs);
  const atRestMs = () => (isIdle() ? IDLE_AT_REST_EVERY_MS : 0);
  const reconciler = startReconciler({
    store: service.store,
    log,
    everyMs: unlessIdle(LOOK_EVERY_MS),
    atRestMs,
    context: {
      ledger: gateway.ledger,
      timings,
      now,
      driverOf: ({ supplier }) => service.driverOf(supplier),
      tagsOf: ({ id }) => instanceTags(environment, id),
      places,
      noteCall: (call) => noteCall(service, call),
      areTooManyGone: async (supplier) => {
        const areTooMany = await areTooManyGone(database, supplier);
        if (areTooMany) lossesStopped.inc({ supplier });
        return areTooMany;
      },
    },
  });
  const strayHolds = new StrayHolds(database, gateway.ledger);
  const sweep = new OrphanSweep({ database, log, environment, timings });
  const loop = (
    name: string,
    everyMs: number | (() => number),
    work: () => Promise<void>,
    restMs: number | (() => number) = atRestMs,
  ) =>
    startLoop(work, {
      everyMs,
      atRestMs: restMs,
      whenFailed: onFirstFailure((error) =>
        log.error(
          { loop: name, error: safeErrorFields(error) },
          'a background loop of the sandboxes failed; it is retried',
        ),
      ),
    });
  const loops = [
    loop('admissions', unlessIdle(ADMISSIONS_EVERY_MS), async () => {
      const cancelled = await cancelStale(database, gateway.ledger, now() - ADMISSION_WITHIN_MS);
      if (cancelled > 0) log.warn({ cancelled }, 'unfinished creations of sandboxes were cancelled');
    }),
    loop(
      'places',
      Math.min(REPORT_EVERY_MS, timings.silentAfterMs / 3),
      () => watchPlaces(service),
      timings.silentAfterMs / 3,
    ),
    loop('orphans', timings.orphansEveryMs, () => sweepAll(service, sweep)),
    loop('cleanup', unlessIdle(CLEANUP_EVERY_MS), async () => {
      await cleanUp(database, (supplier) => drivers.get(supplier), places.own(), now());
    }),
    loop('totals', unlessIdle(TOTALS_EVERY_MS), async () => {
      openSandboxes = await showTotals(database);
    }),
    loop('invariants', INVARIANTS_EVERY_MS, () => audit(service, strayHolds)),
    loop('retention', FORGET_EVERY_MS, async () => {
      await forgetQuotes(database, now());
      await places.forgetOld();
      if (endedDays !== undefined) await forgetEnded(database, now() - endedDays * DAY_MS);
    }),
  ];
  const stopListening = changes.onAny(() => {
    const wasIdle = isIdle();
    changedAtMs = performance.now();
    reconciler.wake();
    if (wasIdle) for (const each of loops) each.wake();
  });
  return async () => {
    stopListening();
    await Promise.all([reconciler.stop(), ...loops.map((each) => each.stop())]);
  };
}

/** Counts a supplier call in metrics and health. A supplier that fails gets no new instances. */
function noteCall({ health, log }: SandboxService, { startedAtMs, endedAtMs, message, ...call }: SupplierCall): void {
  const { supplier, verb, outcome } = call;
  if (outcome === 'NOT_SENT' || outcome === 'AMBIGUOUS') health.failed(supplier);
  else health.answered(supplier);
  // A successful inspection only shows that the supplier answers, not that it can create instances.
  if (verb === 'inspect' && outcome === 'OK') return;
  supplierCalls.inc({ supplier, verb, outcome });
  supplierCallSeconds.inc({ supplier, verb }, (endedAtMs - startedAtMs) / 1_000);
  if (outcome !== 'OK') log.info({ ...call, message }, 'a call to a supplier of sandboxes failed');
}

/**
 * Cancels pending creations whose client never returned, so that no retry accepts them. Releases their holds, then removes them. After the
 * release, the ledger also refuses a hold that arrives late. Each step is repeated until it succeeds.
 */
async function cancelStale(database: Knex, ledger: Pick<Ledger, 'release'>, beforeMs: number): Promise<number> {
  await database('sandboxes')
    .where({ admission: 'PENDING' })
    .where('created_at', '<', new Date(beforeMs))
    .update({ admission: 'CANCELLED', revision: database.raw('revision + 1') });
  const rows: (Payer & { readonly id: string; readonly rid: string })[] = await database('sandboxes as sandbox')
    .join('billing_periods as period', 'period.sandbox_id', 'sandbox.id')
    .where({ 'sandbox.admission': 'CANCELLED', 'period.sequence': 1 })
    .limit(100)
    .select('sandbox.id', {
      accountId: 'period.account_id',
      keyId: 'period.key_id',
      rid: 'period.hold_id',
    });
  let cancelled = 0;
  for (const { id, ...hold } of rows) {
    const { outcome } = await ledger.release({ ...hold, record: '' });
    if (outcome === 'not_ready') continue;
    await withdraw(database, id, 'CANCELLED');
    cancelled += 1;
  }
  return cancelled;
}

/** Sweeps the suppliers that have ever been used. An unused supplier, such as Docker in a first trial, may not exist at all. */
async function sweepAll({ drivers, health, log, database, now }: SandboxService, sweep: OrphanSweep): Promise<void> {
  for (const [supplier, driver] of drivers) {
    const used: unknown = await database('sandboxes').where({ supplier }).first('id');
    if (used === undefined) continue;
    try {
      const { found, stopped } = await sweep.sweep(supplier, driver, now());
      orphansFound.set({ supplier }, found);
      if (stopped) sweepsStopped.inc({ supplier });
      health.answered(supplier);
    } catch (error) {
      health.failed(supplier);
      log.warn({ supplier, reason: String(error) }, 'the instances of a supplier could not be listed');
    }
  }
}

async function watchPlaces({ places }: SandboxService): Promise<void> {
  await places.report();
  const silent = (await places.list()).filter((place) => places.isSilent(place));
  silentPlaceSandboxes.set(silent.reduce((sum, { activeSandboxes }) => sum + activeSandboxes, 0));
}

async function audit({ database, log, now }: SandboxService, strayHolds: StrayHolds): Promise<void> {
  const broken = new Map<string, number>(await checkInvariants(database, now()));
  const stray = await strayHolds.look();
  broken.set('hold_without_sandbox', stray.length);
  for (const [invariant, count] of broken) {
    invariantsBroken.set({ invariant }, count);
    if (count > 0)
      log.error({ invariant, count }, 'the records of sandboxes contradict each other; see docs/operating.md');
  }
  if (stray.length > 0) log.error({ holds: stray.slice(0, 20) }, 'the ledger has holds that belong to no sandbox');
}
