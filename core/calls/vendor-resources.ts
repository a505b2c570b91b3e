import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { databaseUnavailable, isDatabaseUnavailable } from '../base/database-availability';
import { onFirstFailure, startLoop } from '../base/loop';
import { metrics } from '../base/metrics';
import type { Stop } from '../base/resources';
import type { SharedObject } from '../protocols/request-table';
import type { SocketAnswer } from '../wire/upstream-socket';

/** Where an object is, and the usage reported for the answer that created it; undefined if that does not bound its tokens. */
export type VendorResource = SocketAnswer;

export interface NewVendorResource extends VendorResource {
  readonly accountId: string;
  readonly kind: SharedObject;
  readonly id: string;
  /** For how many days the vendor keeps it. */
  readonly days: number;
  /** The ids of its items. Calls may name each of them. */
  readonly items: readonly string[];
}

/** The object that an item belongs to. */
interface VendorItem extends VendorResource {
  /** The same for all items of the object. */
  readonly owner: string;
}

/**
 * The objects that vendors keep, each with the account whose call created it. The database has SHA-256 hashes of ids, and the
 * first half of the hash for items.
 */
export interface VendorResources {
  /**
   * Returns an object of an account; undefined if the account has no object with this id, or if it has expired.
   * @throws DATABASE_UNAVAILABLE
   */
  find(accountId: string, kind: SharedObject, id: string): Promise<VendorResource | undefined>;
  /**
   * Returns the items of an account that have one of these ids, by id.
   * @throws DATABASE_UNAVAILABLE
   */
  findItems(accountId: string, ids: readonly string[]): Promise<ReadonlyMap<string, VendorItem>>;
  /** Resolves when all objects are written, or after 250 ms. The rest is written later and can be found meanwhile. */
  add(objects: readonly NewVendorResource[]): Promise<void>;
  close: Stop;
}

export interface VendorResourcesOptions {
  readonly database: Knex;
  readonly log: Logger;
  /** The most objects of one account. A job drops the oldest. */
  readonly maxKept: number;
  /** The most objects that wait for the database. */
  readonly maxWaiting?: number;
  readonly clearEveryMs?: number;
}

const MAX_WAITING = 10_000;
const MAX_BATCH = 500;
const ANSWERS_WITHIN_MS = 250;
const RETRY_AFTER_MS = 1_000;
const CLEAR_EVERY_MS = 3_600_000;
/** Days that an object is kept beyond the vendor's, because the vendor's days may end later than ours. */
const DAYS_MORE = 1;

const keptIds = new Counter({
  name: 'tollgate_kept_ids_total',
  help: 'Ids of objects stored at vendors, by result (stored, foreign, lost).',
  labelNames: ['outcome'],
  registers: [metrics],
});

interface Waiting {
  readonly row: Row;
  readonly written: () => void;
}

/** An object as the process sends it to Postgres: with hashes instead of ids. */
interface Row extends Omit<NewVendorResource, 'id'> {
  readonly hash: string;
}

export function startVendorResources(options: VendorResourcesOptions): VendorResources {
  const { database, log, maxKept, maxWaiting = MAX_WAITING, clearEveryMs = CLEAR_EVERY_MS } = options;
  const waiting = new Map<string, Waiting>();

  const writeSome = async () => {
    const batch = [...waiting].slice(0, MAX_BATCH);
    const stored = await insert(
      database,
      batch.map(([, { row }]) => row),
    );
    keptIds.inc({ outcome: 'stored' }, stored);
    const foreign = batch.length - stored;
    if (foreign > 0) {
      keptIds.inc({ outcome: 'foreign' }, foreign);
      log.warn(
        { foreign },
        'an answer named an object of another account; the object stays with the account that created it',
      );
    }
    for (const [key, each] of batch) {
      if (waiting.get(key) === each) waiting.delete(key);
      each.written();
    }
  };
  const writeAll = async () => {
    while (waiting.size > 0) await writeSome();
  };
  const writer = startLoop(writeAll, {
    everyMs: RETRY_AFTER_MS,
    whenFailed: onFirstFailure((error) =>
      log.error({ reason: String(error) }, 'ids of kept objects cannot be written to Postgres; the write is retried'),
    ),
  });
  const clearer = startLoop(() => clear(database, maxKept), {
    everyMs: clearEveryMs,
    firstAfterMs: clearEveryMs,
    whenFailed: onFirstFailure((error) =>
      log.error(
        { reason: String(error) },
        'old ids of kept objects cannot be deleted from Postgres; the deletion is retried',
      ),
    ),
  });

  return {
    find: async (accountId, kind, id) => {
      const hash = hashOf(id);
      for (const { row } of waiting.values())
        if (row.accountId === accountId && row.kind === kind && row.hash === hash) return row;
      return findStored(database, accountId, kind, hash);
    },

    findItems: async (accountId, ids) => {
      const own = [...waiting.values()].filter(({ row }) => row.accountId === accountId);
      const fresh = new Map(own.flatMap(({ row }) => row.items.map((item) => [item, { ...row, owner: row.hash }])));
      const hashes = ids.map((id) => [id, itemHashOf(id)] as const);
      const others = hashes.flatMap(([, hash]) => (fresh.has(hash) ? [] : [hash]));
      const stored = others.length === 0 ? undefined : await findStoredItems(database, accountId, others);
      return new Map(
        hashes.flatMap(([id, hash]) => {
          const item = fresh.get(hash) ?? stored?.get(hash);
          return item === undefined ? [] : [[id, item] as const];
        }),
      );
    },

    add: async (objects) => {
      const written = objects.map(
        (object) =>
          new Promise<void>((resolve) => {
            const { id, items, ...rest } = object;
            const row = { ...rest, hash: hashOf(id), items: items.map(itemHashOf) };
            const key = `${row.kind}\n${row.hash}\n${row.upstream}\n${row.accountId}`;
            waiting.get(key)?.written();
            waiting.delete(key);
            waiting.set(key, { row, written: resolve });
          }),
      );
      loseOldest(waiting, maxWaiting);
      writer.wake();
      await Promise.race([Promise.all(written), sleep(ANSWERS_WITHIN_MS, undefined, { ref: false })]);
    },

    close: async () => {
      await Promise.all([writer.stop(), clearer.stop()]);
      await writeAll().catch((error: unknown) =>
        log.error(
          { reason: String(error), lost: waiting.size },
          'ids of kept objects were lost: they could not be written to Postgres',
        ),
      );
    },
  };
}

function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('hex');
}

/** Returns half of the hash. It is still too long for two ids to share it by chance, and it halves the index. */
function itemHashOf(id: string): string {
  return hashOf(id).slice(0, 32);
}

/** Drops the oldest objects while the database is away for long. A lost object is answered with 404 later, and never given to another account. */
function loseOldest(waiting: Map<string, Waiting>, most: number): void {
  for (const [key, { written }] of waiting) {
    if (waiting.size <= most) return;
    waiting.delete(key);
    keptIds.inc({ outcome: 'lost' });
    written();
  }
}

/**
 * Inserts objects. An object that its account already has gets the newest counts. An object of another account stays unchanged
 * while it lives. An answer may name such an object if `sharedObjects` let its call through; that does not transfer the object.
 */
const INSERT = `
  INSERT INTO kept_objects AS known
    (kind, hash, upstream, account_id, credential, input_tokens, output_tokens, items, reported_at, expires_at)
  SELECT kind, decode(hash, 'hex'), upstream, "accountId", credential, "inputTokens", "outputTokens", items,
    clock_timestamp(), now() + days * interval '1 day'
  FROM jsonb_to_recordset(:rows::jsonb) AS given (kind text, hash text, upstream text, "accountId" uuid, credential text,
    "inputTokens" bigint, "outputTokens" bigint, items uuid[], days int)
  ON CONFLICT (kind, hash, upstream) DO UPDATE SET
    account_id = excluded.account_id, credential = excluded.credential, input_tokens = excluded.input_tokens,
    output_tokens = excluded.output_tokens, items = excluded.items, reported_at = excluded.reported_at,
    expires_at = excluded.expires_at
  WHERE known.account_id = excluded.account_id OR known.expires_at < now()
  RETURNING 1`;

/** Returns how many were written. One statement cannot write an object twice, so the first account that names one has it. */
async function insert(database: Knex, rows: readonly Row[]): Promise<number> {
  const first = new Map<string, object>();
  for (const { days, items, ...row } of rows) {
    const key = `${row.kind}\n${row.hash}\n${row.upstream}`;
    if (!first.has(key))
      first.set(key, { ...row, days: days + DAYS_MORE, items: items.length === 0 ? undefined : items });
  }
  const written = await database.raw<{ rows: unknown[] }>(INSERT, { rows: JSON.stringify([...first.values()]) });
  return written.rows.length;
}

/** Deletes expired objects, and of accounts with too many the oldest ones. */
async function clear(database: Knex, maxKept: number): Promise<void> {
  await database('kept_objects').where('expires_at', '<', database.fn.now()).delete();
  const full: string[] = await database('kept_objects')
    .groupBy('account_id')
    .havingRaw('count(*) > ?', [maxKept])
    .pluck('account_id');
  for (const accountId of full) {
    const own = () => database('kept_objects').where('account_id', accountId);
    const oldestKept = own()
      .select('reported_at')
      .orderBy('reported_at', 'desc')
      .offset(maxKept - 1)
      .limit(1);
    await own().where('reported_at', '<', oldestKept).delete();
  }
}

interface Stored {
  readonly upstream: string;
  readonly credential: string;
  readonly input_tokens: bigint | null;
  readonly output_tokens: bigint | null;
}

/** Finds an object. Ids are random, so if two upstreams created the same id, the newer one counts. */
async function findStored(
  database: Knex,
  accountId: string,
  kind: SharedObject,
  hash: string,
): Promise<VendorResource | undefined> {
  try {
    const row = await database('kept_objects')
      .first<Stored>('upstream', 'credential', 'input_tokens', 'output_tokens')
      .where({ kind, hash: Buffer.from(hash, 'hex'), account_id: accountId })
      .where('expires_at', '>', database.fn.now())
      .orderBy('reported_at', 'desc');
    return row && vendorResource(row);
  } catch (error) {
    throw isDatabaseUnavailable(error) ? databaseUnavailable(error) : error;
  }
}

interface StoredItem extends Stored {
  readonly item: string;
  readonly owner: string;
  readonly account_id: string;
}

/**
 * Finds items by their hashes. The condition on items stands alone, because with a second one Postgres would also read the index
 * of all the account's objects. The hashes come from a subquery, because for many known ones Postgres would plan to find most of
 * the table.
 */
const FIND_ITEMS = `
  SELECT replace(item::text, '-', '') AS item, encode(hash, 'hex') AS owner, account_id, upstream, credential, input_tokens,
    output_tokens
  FROM (
    SELECT * FROM kept_objects
    WHERE items && (SELECT array_agg(named::uuid) FROM jsonb_array_elements_text(:hashes::jsonb) AS named) OFFSET 0
  ) AS found, unnest(items) AS item
  WHERE expires_at > now()
  ORDER BY reported_at`;

/**
 * Returns items of an account by their hash. An item in the answers to two accounts stays with the first account. If two upstreams
 * created it, the newer one counts.
 */
async function findStoredItems(
  database: Knex,
  accountId: string,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, VendorItem>> {
  try {
    const { rows } = await database.raw<{ rows: StoredItem[] }>(FIND_ITEMS, { hashes: JSON.stringify(hashes) });
    const first = new Map<string, StoredItem>();
    for (const row of rows) {
      const key = `${row.item}\n${row.upstream}`;
      if (!first.has(key)) first.set(key, row);
    }
    const own = [...first.values()].filter((row) => row.account_id === accountId);
    return new Map(own.map((row) => [row.item, { ...vendorResource(row), owner: row.owner }]));
  } catch (error) {
    throw isDatabaseUnavailable(error) ? databaseUnavailable(error) : error;
  }
}

function vendorResource({ upstream, credential, input_tokens: input, output_tokens: output }: Stored): VendorResource {
  const count = (tokens: bigint | null) => (tokens === null ? undefined : Number(tokens));
  return { upstream, credential, inputTokens: count(input), outputTokens: count(output) };
}
