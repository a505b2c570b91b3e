import type { Knex } from 'knex';

export interface EntryRow {
  readonly accountId: string;
  readonly seq: number;
  readonly rid: string;
  readonly kind: string;
  readonly keyId: string | null;
  readonly amountE8: string;
  readonly postedE8: string;
}

export interface RecordRow {
  readonly rid: string | null;
  readonly costE8: string;
}

/**
 * The tables as the drainer writes them, for a simulation: it knows the three statements of a drain by their text, and one
 * that it does not know is a failure of the simulation. Transactions are all or nothing; locks are held to their end.
 */
export class SimulatedDatabase {
  readonly entries = new Map<string, EntryRow>();
  readonly records = new Map<string, RecordRow>();
  readonly #locks = new Map<number, Owner>();

  /** What one process is given; each statement and each commit goes through its gate. */
  connect(gate: <T>(work: () => T) => Promise<T>, isDead: () => boolean): Knex {
    const transaction = async <T>(work: (trx: Knex) => Promise<T>): Promise<T> => {
      const own = { isDead };
      const pending: (() => void)[] = [];
      try {
        const raw = (sql: string, values: Record<string, string>) =>
          gate(() => this.#answer(sql, values, own, pending));
        const done = await work({ raw } as unknown as Knex);
        await gate(() => {
          for (const write of pending) write();
        });
        return done;
      } finally {
        for (const [shard, owner] of this.#locks) if (owner === own) this.#locks.delete(shard);
      }
    };
    return { transaction } as unknown as Knex;
  }

  #answer(sql: string, values: Record<string, string>, own: Owner, pending: (() => void)[]): { rows: object[] } {
    if (sql.includes('pg_try_advisory_xact_lock')) return { rows: this.#lock(values['shards'], own) };
    const rows = JSON.parse(values['rows'] ?? '[]') as unknown[];
    if (sql.includes('INSERT INTO ledger_entries')) pending.push(() => this.#insertEntries(rows as EntryRow[]));
    else if (sql.includes('INSERT INTO usage_records')) pending.push(() => this.#insertRecords(rows as UsageJson[]));
    else throw new Error(`the simulated database does not know: ${sql.slice(0, 80)}`);
    return { rows: [] };
  }

  #lock(shards: string | undefined, own: Owner): object[] {
    const wanted = JSON.parse(shards ?? '[]') as number[];
    // The connection of a process that died is gone, and its locks with it.
    const free = wanted.filter((shard) => this.#locks.get(shard)?.isDead() ?? true);
    for (const shard of free) this.#locks.set(shard, own);
    return free.map((shard) => ({ shard }));
  }

  #insertEntries(rows: readonly EntryRow[]): void {
    for (const row of rows) {
      const key = `${row.accountId} ${row.rid} ${row.kind}`;
      if (!this.entries.has(key)) this.entries.set(key, row);
    }
  }

  #insertRecords(rows: readonly UsageJson[]): void {
    for (const { requestId, rid, costE8 } of rows)
      if (!this.records.has(requestId)) this.records.set(requestId, { rid, costE8 });
  }
}

interface Owner {
  isDead(): boolean;
}

interface UsageJson extends RecordRow {
  readonly requestId: string;
}
