import { hostname } from 'node:os';
import type { Knex } from 'knex';
import type { Sandbox } from '../life/sandbox';
import { FINAL_STATES } from '../life/states';
import type { Timings } from '../life/timings';
import type { SupplierDriver } from '../suppliers/supplier';
import { fromRow } from './rows';

/**
 * Whether this node can ask the supplier for a sandbox. `silent`: only another node can, which may be away. `lost`: an operator says
 * that no node ever will.
 */
export type Reach = 'here' | 'silent' | 'lost';

/** Where instances live that not every node reaches, and when a node that does was last there. */
export interface Place {
  readonly id: string;
  readonly supplier: string;
  /** Of the machine that was last seen with it. */
  readonly host: string;
  readonly seenAtMs: number;
  readonly lostAtMs: number | null;
  readonly activeSandboxes: number;
}

/** A place that no node has reached for so long is forgotten, unless sandboxes that have not ended live there. */
const FORGOTTEN_AFTER_MS = 30 * 86_400_000;

const PLACES = `
  SELECT place.*, count(sandbox.id)::int AS active_sandboxes
  FROM sandbox_places AS place
  LEFT JOIN sandboxes AS sandbox ON sandbox.place = place.id AND sandbox.observed_state NOT IN ('FAILED', 'TERMINATED')`;

export interface PlacesOptions {
  readonly database: Knex;
  readonly drivers: ReadonlyMap<string, Pick<SupplierDriver, 'place'>>;
  now(): number;
  readonly timings: Pick<Timings, 'silentAfterMs'>;
}

/** Which sandboxes this node can reach, and which nodes reach the others. */
export class Places {
  constructor(private readonly options: PlacesOptions) {}

  /** Where new instances of a supplier live that this node makes; null when every node reaches them. */
  homeOf(supplier: string): string | null {
    return this.options.drivers.get(supplier)?.place ?? null;
  }

  /** The places that this node reaches. */
  own(): readonly string[] {
    return [...this.options.drivers.values()].flatMap(({ place }) => place ?? []);
  }

  isHere({ supplier, place }: Pick<Sandbox, 'supplier' | 'place'>): boolean {
    return place === null || place === this.homeOf(supplier);
  }

  /** An instance that was never asked for lives nowhere yet: every node may make it. */
  async reachOf(sandbox: Pick<Sandbox, 'supplier' | 'place' | 'createSentAtMs'>): Promise<Reach> {
    if (sandbox.createSentAtMs === null || this.isHere(sandbox)) return 'here';
    const place = await this.options.database('sandbox_places').where({ id: sandbox.place }).first('lost_at');
    return place?.lost_at instanceof Date ? 'lost' : 'silent';
  }

  /** A place that was last seen before is silent: its node is away. */
  silentBefore(): Date {
    return new Date(this.options.now() - this.options.timings.silentAfterMs);
  }

  /** Says that this node reaches its places. What waited there while it was away is due now. */
  async begin(): Promise<void> {
    await this.report();
    const { database, now } = this.options;
    await database('sandboxes')
      .whereIn('place', this.own())
      .where({ observed_state: 'UNKNOWN' })
      .update({ next_at: new Date(now()) });
  }

  async report(): Promise<void> {
    const { database, drivers, now } = this.options;
    for (const [supplier, { place }] of drivers) {
      if (place === undefined) continue;
      const seen = { supplier, host: hostname(), seen_at: new Date(now()), lost_at: null };
      await database('sandbox_places')
        .insert({ id: place, ...seen })
        .onConflict('id')
        .merge();
    }
  }

  /** All of them, those that were seen last first. */
  async list(): Promise<readonly Place[]> {
    const { rows } = await this.options.database.raw<{ rows: Record<string, unknown>[] }>(
      `${PLACES} GROUP BY place.id ORDER BY place.seen_at DESC, place.id`,
    );
    return rows.map((row) => fromRow<Place>(row));
  }

  async find(id: string): Promise<Place | undefined> {
    const { rows } = await this.options.database.raw<{ rows: Record<string, unknown>[] }>(
      `${PLACES} WHERE place.id = ? GROUP BY place.id`,
      [id],
    );
    return rows[0] === undefined ? undefined : fromRow<Place>(rows[0]);
  }

  isSilent({ seenAtMs }: Place): boolean {
    return seenAtMs < this.silentBefore().getTime();
  }

  /**
   * Writes in a transaction that a place is gone for good: its sandboxes end as lost, billed to their last confirmation.
   * @returns false when a node has reached it lately: then nothing is written
   */
  async lose(transaction: Knex.Transaction, id: string): Promise<boolean> {
    const at = new Date(this.options.now());
    const silent = transaction('sandbox_places').where({ id }).where('seen_at', '<', this.silentBefore());
    if ((await silent.update({ lost_at: at })) === 0) return false;
    await transaction('sandboxes')
      .where({ place: id })
      .whereNotIn('observed_state', FINAL_STATES)
      .update({ next_at: at });
    await transaction('supplier_cleanup').where({ place: id, done_at: null }).update({ done_at: at });
    return true;
  }

  async forgetOld(): Promise<void> {
    const { database, now } = this.options;
    await database('sandbox_places')
      .where('seen_at', '<', new Date(now() - FORGOTTEN_AFTER_MS))
      .whereNotExists((active) =>
        active
          .from('sandboxes')
          .whereRaw('sandboxes.place = sandbox_places.id')
          .whereNotIn('observed_state', FINAL_STATES),
      )
      .delete();
  }
}
