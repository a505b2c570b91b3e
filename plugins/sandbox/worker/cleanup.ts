import type { Knex } from 'knex';
import { newId } from '../../../core/ids';
import { fromRow, toRow } from '../books/rows';
import { postponed } from '../life/lifecycle';
import type { InstanceReference, SupplierDriver } from '../suppliers/supplier';

/** An instance that must be ended and that no sandbox will end. */
export interface Cleanup {
  readonly id: string;
  readonly supplier: string;
  /** The place of the instance, if only some nodes reach it. */
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

/** Adds an instance once, however often it is found. */
export async function insertCleanup(
  database: Knex,
  found: Pick<Cleanup, 'supplier' | 'place' | 'ref' | 'sandboxId' | 'reason'>,
  nowMs: number,
): Promise<void> {
  const row = { ...found, id: newId(), name: found.ref.name, createdAtMs: nowMs, nextAtMs: nowMs };
  await database.raw(
    `INSERT INTO supplier_cleanup (id, supplier, place, ref, name, sandbox_id, reason, created_at, next_at)
     VALUES (:id, :supplier, :place, :ref, :name, :sandbox_id, :reason, :created_at, :next_at)
     ON CONFLICT (supplier, name) WHERE done_at IS NULL DO NOTHING`,
    toRow(row) as Record<string, string>,
  );
}

export async function selectCleanup(
  database: Knex,
  { limit, after }: { limit: number; after: string | undefined },
): Promise<Record<string, unknown>[]> {
  const rows = database('supplier_cleanup').orderBy('id', 'desc').limit(limit);
  if (after !== undefined) rows.where('id', '<', after);
  return rows;
}

/**
 * Ends the due instances that this node reaches, and retries failures later. Two workers may do this at once, because ending a
 * missing instance succeeds.
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
