import { hostname } from 'node:os';
import type { Knex } from 'knex';
import type { Sandbox } from '../lifecycle/sandbox';
import type { Timings } from '../lifecycle/settings';
import { FINAL_STATES } from '../lifecycle/states';
import type { SupplierDriver } from '../suppliers/supplier';
import type { Timed } from './queries';
import { fromRow } from './rows';

/**
 * Whether this node can reach a sandbox. `silent`: only another node can, and it may be away. `lost`: an operator declared that
 * no node ever will.
 */
type Reach = 'here' | 'silent' | 'lost';

/** A place (the data folder of instances that only some nodes reach), and when a node that reaches it last reported. */
export interface Host {
  readonly id: string;
  readonly supplier: string;
  /** The host name of the machine that last reported this place (a data folder of instances). */
  readonly host: string;
  readonly seenAtMs: number;
  readonly lostAtMs: number | null;
  readonly activeSandboxes: number;
}

/** How long a place (a data folder of instances) is kept after a node last reported it. A place with unfinished sandboxes is kept for longer. */
const FORGOTTEN_AFTER_MS = 30 * 86_400_000;

/** Knows which sandboxes this node reaches, and which nodes reach the other sandboxes. */
export class Places {
  constructor(
    private readonly options: Pick<Timed, 'database' | 'now'> & {
      readonly drivers: ReadonlyMap<string, Pick<SupplierDriver, 'place'>>;
      readonly timings: Pick<Timings, 'silentAfterMs'>;
    },
  ) {}

  /** Returns the place (data folder) of the instances that this node creates at a supplier; null if every node reaches these instances. */
  homeOf(supplier: string): string | null {
    return this.options.drivers.get(supplier)?.place ?? null;
  }

  /** Returns the places (data folders of instances) that this node reaches. */
  own(): readonly string[] {
    return [...this.options.drivers.values()].flatMap(({ place }) => place ?? []);
  }

  isHere({ supplier, place }: Pick<Sandbox, 'supplier' | 'place'>): boolean {
    return place === null || place === this.homeOf(supplier);
  }

  /** Returns whether this node reaches a sandbox. Every node may create an instance for which no create was sent yet. */
  async reachOf(sandbox: Pick<Sandbox, 'supplier' | 'place' | 'createSentAtMs'>): Promise<Reach> {
    if (sandbox.createSentAtMs === null || this.isHere(sandbox)) return 'here';
    const place = await this.options.database('sandbox_places').where({ id: sandbox.place }).first('lost_at');
    return place?.lost_at instanceof Date ? 'lost' : 'silent';
  }

  /** Returns a past time. If no node has reported a place (a data folder of instances) since then, the node of this place counts as away. */
  silentBefore(): Date {
    return new Date(this.options.now() - this.options.timings.silentAfterMs);
  }

  /** Reports that this node reaches its places (data folders of instances). Makes a visit of the sandboxes that waited for this node due at once. */
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

  /** Returns all places (data folders of instances), the most recently reported first. */
  async list(): Promise<readonly Host[]> {
    const { rows } = await this.options.database.raw<{ rows: Record<string, unknown>[] }>(
      `SELECT place.*, count(sandbox.id)::int AS active_sandboxes
       FROM sandbox_places AS place LEFT JOIN sandboxes AS sandbox
         ON sandbox.place = place.id AND sandbox.observed_state NOT IN ('FAILED', 'TERMINATED')
       GROUP BY place.id ORDER BY place.seen_at DESC, place.id`,
    );
    return rows.map((row) => fromRow<Host>(row));
  }

  isSilent({ seenAtMs }: Host): boolean {
    return seenAtMs < this.silentBefore().getTime();
  }

  /**
   * Marks a place (a data folder of instances) as lost, in a transaction. Its sandboxes end as lost and are billed up to their last
   * confirmation.
   * @returns false, and writes nothing, if a node has reported the place recently
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
