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

/**
 * The upstream and credential of a vendor object, and the token counts of the answer that created it. The counts are undefined unless they
 * are an upper bound of the object's tokens.
 */
export type VendorResource = SocketAnswer;

export interface NewVendorResource extends VendorResource {
  readonly accountId: string;
  readonly kind: SharedObject;
  readonly id: string;
  /** For how many days the vendor keeps the object. */
  readonly days: number;
  /** The ids of the parts ("items") that the vendor stores with the object, such as messages. Calls may name each item. */
  readonly items: readonly string[];
}

/** An item, with the upstream and credential of the object that it belongs to. */
interface VendorItem extends VendorResource {
  /** Identifies the object that the item belongs to: all items of one object have the same value. */
  readonly owner: string;
}

/**
 * The objects that vendors store, each with the account whose call created it. Postgres stores SHA-256 hashes of their ids instead of the
 * ids, and half a hash for items.
 */
export interface VendorResources {
  /**
   * Returns an object of an account; undefined if the account has no object with this id, or if it has expired.
   * @throws DATABASE_UNAVAILABLE
   */
  find(accountId: string, kind: SharedObject, id: string): Promise<VendorResource | undefined>;
  /**
   * Returns those of the account's items (parts of vendor objects) that have the given ids. The map's keys are the ids.
   * @throws DATABASE_UNAVAILABLE
   */
  findItems(accountId: string, ids: readonly string[]): Promise<ReadonlyMap<string, VendorItem>>;
  /** Resolves when all vendor objects are written to Postgres, or after 250 ms. The process writes the rest later and can find them meanwhile. */
  add(objects: readonly NewVendorResource[]): Promise<void>;
  close: Stop;
}

export interface VendorResourcesOptions {
  readonly database: Knex;
  readonly log: Logger;
  /** The most vendor objects of one account. A job deletes the oldest ones above this number. */
  readonly maxVendorResources: number;
  /** The most vendor objects that wait to be written to Postgres. */
  readonly maxWaiting?: number;
  readonly clearEveryMs?: number;
}

const MAX_WAITING = 10_000;
const MAX_BATCH = 500;
const ANSWERS_WITHIN_MS = 250;
const RETRY_AFTER_MS = 1_000;
const CLEAR_EVERY_MS = 3_600_000;
/** How many days the gateway keeps an object beyond the vendor's stated days, because the vendor's last day may end later than the gateway's. */
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

/** A vendor object as the process sends it to Postgres: with hashes instead of ids. */
interface Row extends Omit<NewVendorResource, 'id'> {
  readonly hash: string;
}

export function startVendorResources(options: VendorResourcesOptions): VendorResources {
  const { database, log, maxVendorResources, maxWaiting = MAX_WAITING, clearEveryMs = CLEAR_EVERY_MS } = options;
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
        "an upstream's answer named a stored object of another account; the object stays with the account that created it",
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
      log.error(
        { reason: String(error) },
        'ids of vendor resources cannot be written to Postgres; the write is retried',
      ),
    ),
  });
  const clearer = startLoop(() => clear(database, maxVendorResources), {
    everyMs: clearEveryMs,
    firstAfterMs: clearEveryMs,
    whenFailed: onFirstFailure((error) =>
      log.error(
        { reason: String(error) },
        'old ids of vendor resources cannot be deleted from Postgres; the deletion is retried',
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
          'ids of vendor resources were lost: they could not be written to Postgres',
        ),
      );
    },
  };
}

function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('hex');
}

/** Returns the first half of an item's hash. Half a hash halves the size of the index and is still too long for a collision by chance. */
function itemHashOf(id: string): string {
  return hashOf(id).slice(0, 32);
}

/** Drops the oldest vendor objects that wait for Postgres during a long outage. Calls that name a dropped object get 404; no other account can use it. */
function loseOldest(waiting: Map<string, Waiting>, most: number): void {
  for (const [key, { written }] of waiting) {
    if (waiting.size <= most) return;
    waiting.delete(key);
    keptIds.inc({ outcome: 'lost' });
    written();
  }
}

/**
 * Inserts vendor objects. If the account already has the object, it gets the newest token counts. An object of another account stays
 * unchanged until it expires. An answer may name such an object, because `sharedObjects` can allow a call to use it.
 */
const INSERT = `
  INSERT INTO vendor_resources AS known
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

/** Writes vendor objects and returns how many were written. One statement cannot write an object twice, so the first account that names an object owns it. */
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

/** Deletes expired vendor objects, and the oldest ones of accounts that have too many. */
async function clear(database: Knex, maxVendorResources: number): Promise<void> {
  await database('vendor_resources').where('expires_at', '<', database.fn.now()).delete();
  const full: string[] = await database('vendor_resources')
    .groupBy('account_id')
    .havingRaw('count(*) > ?', [maxVendorResources])
    .pluck('account_id');
  for (const accountId of full) {
    const own = () => database('vendor_resources').where('account_id', accountId);
    const oldestKept = own()
      .select('reported_at')
      .orderBy('reported_at', 'desc')
      .offset(maxVendorResources - 1)
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

/** Finds a vendor object by its hash. Ids are random; if two upstreams still created the same id, returns the newer object. */
async function findStored(
  database: Knex,
  accountId: string,
  kind: SharedObject,
  hash: string,
): Promise<VendorResource | undefined> {
  try {
    const row = await database('vendor_resources')
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
 * Finds items of vendor objects by the items' hashes. The inner query selects only by items. With another condition, Postgres would also
 * read the index of all objects of the account. The hashes come from a subquery, because with many literal hashes Postgres would expect to
 * match most of the table.
 */
const FIND_ITEMS = `
  SELECT replace(item::text, '-', '') AS item, encode(hash, 'hex') AS owner, account_id, upstream, credential, input_tokens,
    output_tokens
  FROM (
    SELECT * FROM vendor_resources
    WHERE items && (SELECT array_agg(named::uuid) FROM jsonb_array_elements_text(:hashes::jsonb) AS named) OFFSET 0
  ) AS found, unnest(items) AS item
  WHERE expires_at > now()
  ORDER BY reported_at`;

/**
 * Returns the account's items by hash. If answers to two accounts contain an item, it belongs to the first account. If two upstreams
 * created the same item, returns the newer one.
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
