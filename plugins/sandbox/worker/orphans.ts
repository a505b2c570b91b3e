import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import { UUID } from '../../../core/storage/page';
import { postponed } from '../lifecycle/lifecycle';
import type { Sandbox } from '../lifecycle/sandbox';
import type { Timings } from '../lifecycle/settings';
import { isFinal } from '../lifecycle/states';
import type { SandboxService } from '../service';
import { fromRow, toRow } from '../store/rows';
import type { InstanceReference, InstanceSummary, SupplierDriver } from '../suppliers/supplier';
import { environmentTags, SANDBOX_TAG } from '../suppliers/tags';

/** How many orphans (instances without a sandbox) one sweep may remove. More orphans indicate a mistake, so an operator must check first. */
const MAX_ORPHANS = 5;
const MAX_ORPHAN_SHARE = 0.1;

/** Returns whether there are too many orphans (instances without a sandbox) to remove any. A pure function. */
function isTooMany(orphans: number, listed: number): boolean {
  return orphans > Math.max(MAX_ORPHANS, listed * MAX_ORPHAN_SHARE);
}

/** Compares suppliers' instances with the sandboxes in the database. Removes an instance without a sandbox after two sweeps have found it. */
export class OrphanSweep {
  readonly #seen = new Map<string, ReadonlySet<string>>();

  constructor(
    readonly options: Pick<SandboxService, 'database' | 'log'> & {
      readonly environment: string;
      readonly timings: Pick<Timings, 'orphanAfterMs'>;
    },
  ) {}

  /**
   * Looks for orphans at one supplier. `stopped`: the sweep found too many orphans and removed none.
   * @throws SupplierError, because an incomplete list must not be used
   */
  async sweep(
    supplier: string,
    driver: SupplierDriver,
    nowMs: number,
  ): Promise<{ readonly found: number; readonly stopped: boolean }> {
    const { database, log, environment, timings } = this.options;
    const listed: InstanceSummary[] = [];
    for await (const summary of driver.list(environmentTags(environment))) listed.push(summary);
    // The gateway reads the sandboxes after the supplier's list of instances, because it writes a sandbox's row before it creates the instance.
    const known = await readKnown(database, listed);
    const orphans = listed
      .filter(({ createdAt }) => nowMs - createdAt.getTime() > timings.orphanAfterMs)
      .flatMap(({ reference: ref, tags }) => {
        const sandbox = known.get(tags[SANDBOX_TAG] ?? '');
        const reason = whyOrphaned(ref, sandbox);
        return reason === undefined ? [] : [{ ref, sandboxId: sandbox?.id ?? null, reason }];
      });
    const before = this.#seen.get(supplier) ?? new Set();
    this.#seen.set(supplier, new Set(orphans.map(({ ref }) => ref.id)));
    const counts = { orphans: orphans.length, listed: listed.length };
    if (isTooMany(counts.orphans, counts.listed)) {
      const message = 'too many orphaned instances at once; none is removed until an operator has checked them';
      log.error({ supplier, ...counts }, message);
      return { found: orphans.length, stopped: true };
    }
    for (const orphan of orphans.filter(({ ref }) => before.has(ref.id))) {
      const { ref, reason } = orphan;
      log.warn({ supplier, name: ref.name, reason }, 'removing an instance that belongs to no sandbox');
      await insertCleanup(database, { ...orphan, supplier, place: driver.place ?? null }, nowMs);
    }
    return { found: orphans.length, stopped: false };
  }
}

type Known = Pick<Sandbox, 'id' | 'observedState' | 'supplierRef'>;

async function readKnown(database: Knex, listed: readonly InstanceSummary[]): Promise<ReadonlyMap<string, Known>> {
  const ids = listed.map(({ tags }) => tags[SANDBOX_TAG] ?? '').filter((id) => UUID.test(id));
  const rows: Known[] = await database('sandboxes')
    .whereIn('id', ids)
    .select('id', { observedState: 'observed_state', supplierRef: 'supplier_ref' });
  return new Map(rows.map((row) => [row.id, row]));
}

/** Returns the reason why no sandbox owns an instance; undefined if one does. */
function whyOrphaned({ id }: InstanceReference, sandbox: Known | undefined): string | undefined {
  if (sandbox === undefined) return 'NO_SANDBOX';
  if (isFinal(sandbox.observedState)) return 'SANDBOX_ENDED';
  const isOther = sandbox.supplierRef !== null && sandbox.supplierRef.id !== id;
  return isOther ? 'ANOTHER_INSTANCE' : undefined;
}

/** An instance that the gateway must terminate by itself, because no sandbox owns it. */
export interface Cleanup {
  readonly id: string;
  readonly supplier: string;
  /** The id of the place (the data folder) where the instance lives; null if every node reaches the instance. */
  readonly place: string | null;
  readonly ref: InstanceReference;
  readonly name: string;
  readonly sandboxId: string | null;
  readonly reason: string;
  readonly createdAtMs: number;
  readonly nextAtMs: number;
  readonly attempts: number;
  readonly doneAtMs: number | null;
}

/**
 * Stores an instance to remove, once, even if several sweeps find it. Skips an instance removed in the last minute, because the sweep's
 * list may be older than the removal.
 */
export async function insertCleanup(
  database: Knex,
  found: Pick<Cleanup, 'supplier' | 'place' | 'ref' | 'sandboxId' | 'reason'>,
  nowMs: number,
): Promise<void> {
  const row = { ...found, id: newId(), name: found.ref.name, createdAtMs: nowMs, nextAtMs: nowMs };
  await database.raw(
    `INSERT INTO supplier_cleanup (id, supplier, place, ref, name, sandbox_id, reason, created_at, next_at)
     SELECT :id::uuid, :supplier::text, :place::text, :ref::jsonb, :name::text, :sandbox_id::uuid, :reason::text,
       :created_at::timestamptz, :next_at::timestamptz
     WHERE NOT EXISTS (SELECT 1 FROM supplier_cleanup
       WHERE supplier = :supplier AND name = :name AND done_at > :created_at::timestamptz - interval '1 minute')
     ON CONFLICT (supplier, name) WHERE done_at IS NULL DO NOTHING`,
    toRow(row) as Record<string, string>,
  );
}

/**
 * Terminates the recorded instances whose removal is due and that this node can reach. Failed removals are retried later. Two workers may
 * do this at once, because terminating a missing instance succeeds.
 */
export async function cleanUp(
  database: Knex,
  driverOf: (supplier: string) => SupplierDriver | undefined,
  places: readonly string[],
  nowMs: number,
): Promise<number> {
  const rows: Record<string, unknown>[] = await database('supplier_cleanup')
    .whereNull('done_at')
    .where((reached) => reached.whereNull('place').orWhereIn('place', places))
    .where('next_at', '<=', new Date(nowMs))
    .orderBy('next_at')
    .limit(50);
  let removed = 0;
  for (const cleanup of rows.map((row) => fromRow<Cleanup>(row))) {
    const isGone = await remove(driverOf(cleanup.supplier), cleanup);
    const set = isGone ? { doneAtMs: nowMs } : postponed(cleanup.attempts, nowMs);
    await database('supplier_cleanup').where({ id: cleanup.id }).update(toRow(set));
    if (isGone) removed += 1;
  }
  return removed;
}

async function remove(driver: SupplierDriver | undefined, { ref }: Cleanup): Promise<boolean> {
  if (driver === undefined) return false;
  try {
    await driver.terminate(ref);
    return (await driver.inspect(ref)).kind === 'gone';
  } catch {
    return false;
  }
}

/**
 * Returns true if so many instances of a supplier seem to be gone at once that the gateway trusts none of these reports. For example, the
 * supplier's address may lead to another server now.
 */
export async function areTooManyGone(database: Knex, supplier: string): Promise<boolean> {
  const { rows } = await database.raw<{ rows: { gone: number; all: number }[] }>(
    `SELECT count(gone_since)::int AS gone, count(*)::int AS all FROM sandboxes
     WHERE supplier = ? AND supplier_ref IS NOT NULL AND observed_state NOT IN ('FAILED', 'TERMINATED')`,
    [supplier],
  );
  const { gone, all } = rows[0] ?? { gone: 0, all: 0 };
  return isTooMany(gone, all);
}
