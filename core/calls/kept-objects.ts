import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { databaseUnavailable, isDatabaseUnavailable } from '../database-reach';
import type { SharedObject } from '../dialects/dialect';
import { onFirstFailure, startLoop } from '../loop';
import { metrics } from '../metrics';
import type { Stop } from '../resources';
import type { SocketAnswer } from '../wire/upstream-socket';

/** Where an object is, and the usage reported for the answer that created it. */
export interface KeptObject extends SocketAnswer {
  readonly model: string;
}

export interface NewObject extends KeptObject {
  readonly accountId: string;
  readonly kind: SharedObject;
  readonly id: string;
  /** For how many days the vendor keeps it. */
  readonly days: number;
  /** The ids of its items. Calls may name each of them. */
  readonly items: readonly string[];
  /** The most tokens of all its items together; undefined if unknown. */
  readonly itemTokens: number | undefined;
}

/** Where an item of an object is. */
export interface KeptItem extends Pick<KeptObject, 'upstream' | 'credential'> {
  /** The object of the item: the same for all its items. */
  readonly owner: string;
  /** The most tokens of all items of that object together; undefined if unknown. */
  readonly tokens: number | undefined;
}

/**
 * The objects that vendors keep, each with the account whose call created it. The database has SHA-256 hashes of ids, and the
 * first half of the hash for items.
 */
export interface KeptObjects {
  /**
   * Returns an object of an account; undefined if the account has no object with this id, or if it has expired.
   * @throws DATABASE_UNAVAILABLE
   */
  find(accountId: string, kind: SharedObject, id: string): Promise<KeptObject | undefined>;
  /**
   * Returns the items of an account that have one of these ids, by id.
   * @throws DATABASE_UNAVAILABLE
   */
  findItems(accountId: string, ids: readonly string[]): Promise<ReadonlyMap<string, KeptItem>>;
  /** Resolves when all objects are written, or after 250 ms. The rest is written later and can be found meanwhile. */
  add(objects: readonly NewObject[]): Promise<void>;
  close: Stop;
}

export interface KeptObjectsOptions {
  readonly database: Knex;
  readonly log: Logger;
  /** The most objects of one account; the oldest reports are dropped first. */
  readonly mostOfAccount?: number;
  /** The most objects that wait for the database. */
  readonly mostWaiting?: number;
}

const MOST_OF_ACCOUNT = 100_000;
const MOST_WAITING = 10_000;
const MOST_AT_ONCE = 500;
const ANSWERS_WITHIN_MS = 250;
const RETRY_AFTER_MS = 1_000;
const CLEAR_EVERY_MS = 3_600_000;
/** How often an insert is tried. Nodes that write objects of one account at the same moment draw the same number, and all but one must draw again. */
const DRAWS_AT_MOST = 5;
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

/** An object as the process sends it to Postgres. */
interface Row extends Omit<KeptObject, 'inputTokens' | 'outputTokens'> {
  readonly accountId: string;
  readonly kind: SharedObject;
  readonly hash: string;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly days: number;
  /** null: the object has no items, like most. */
  readonly items: readonly string[] | null;
  readonly itemTokens: number | null;
}

export function startKeptObjects(options: KeptObjectsOptions): KeptObjects {
  const { database, log, mostOfAccount = MOST_OF_ACCOUNT, mostWaiting = MOST_WAITING } = options;
  const waiting = new Map<string, Waiting>();

  const writeSome = async () => {
    const batch = [...waiting].slice(0, MOST_AT_ONCE);
    const stored = await insert(
      database,
      batch.map(([, { row }]) => row),
    );
    keptIds.inc({ outcome: 'stored' }, stored.length);
    const foreign = batch.length - stored.length;
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
    await dropOldest(database, stored, mostOfAccount);
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
  const clearer = startLoop(() => database('kept_objects').where('expires_at', '<', database.fn.now()).delete(), {
    everyMs: CLEAR_EVERY_MS,
    firstAfterMs: CLEAR_EVERY_MS,
    whenFailed: onFirstFailure((error) =>
      log.error(
        { reason: String(error) },
        'expired ids of kept objects cannot be deleted from Postgres; the deletion is retried',
      ),
    ),
  });

  return {
    find: async (accountId, kind, id) => {
      const hash = hashOf(id);
      for (const { row } of waiting.values())
        if (row.accountId === accountId && row.kind === kind && row.hash === hash) return fromRow(row);
      return findStored(database, accountId, kind, hash);
    },

    findItems: async (accountId, ids) => {
      const hashes = ids.map((id) => [id, itemHashOf(id)] as const);
      const fresh = itemsIn([...waiting.values()].filter(({ row }) => row.accountId === accountId));
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
            const row = rowOf(object);
            const key = `${row.kind}\n${row.hash}\n${row.upstream}\n${row.accountId}`;
            waiting.get(key)?.written();
            waiting.delete(key);
            waiting.set(key, { row, written: resolve });
          }),
      );
      loseOldest(waiting, mostWaiting);
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

function rowOf({ id, inputTokens, outputTokens, days, items, itemTokens, ...rest }: NewObject): Row {
  return {
    ...rest,
    hash: hashOf(id),
    days: days + DAYS_MORE,
    inputTokens: inputTokens ?? null,
    outputTokens: outputTokens ?? null,
    items: items.length === 0 ? null : items.map(itemHashOf),
    itemTokens: itemTokens ?? null,
  };
}

function itemsIn(waiting: readonly Waiting[]): ReadonlyMap<string, KeptItem> {
  return new Map(
    waiting.flatMap(({ row: { upstream, credential, hash, items, itemTokens } }) => {
      const item = { upstream, credential, owner: hash, tokens: itemTokens ?? undefined };
      return (items ?? []).map((each) => [each, item] as const);
    }),
  );
}

function fromRow({ upstream, credential, model, inputTokens, outputTokens }: Row): KeptObject {
  return {
    upstream,
    credential,
    model,
    inputTokens: inputTokens ?? undefined,
    outputTokens: outputTokens ?? undefined,
  };
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

interface Stored {
  readonly account_id: string;
  readonly number: bigint;
}

/**
 * Inserts objects. An object that its account already has gets the newest counts. An object of another account stays unchanged
 * while it lives. An answer may name such an object if `sharedObjects` let its call through; that does not transfer the object.
 */
const INSERT = `
  INSERT INTO kept_objects AS known
    (kind, hash, upstream, account_id, number, credential, model, input_tokens, output_tokens, items, item_tokens, expires_at)
  SELECT kind, decode(hash, 'hex'), upstream, "accountId",
    coalesce((SELECT max(number) FROM kept_objects AS own WHERE own.account_id = "accountId"), 0)
      + row_number() OVER (PARTITION BY "accountId" ORDER BY place),
    credential, model, "inputTokens", "outputTokens", items, "itemTokens", now() + days * interval '1 day'
  FROM ROWS FROM (jsonb_to_recordset(:rows::jsonb) AS (
    kind text, hash text, upstream text, "accountId" uuid, credential text, model text, "inputTokens" bigint,
    "outputTokens" bigint, items uuid[], "itemTokens" bigint, days int)) WITH ORDINALITY AS given (
    kind, hash, upstream, "accountId", credential, model, "inputTokens", "outputTokens", items, "itemTokens", days, place)
  ON CONFLICT (kind, hash, upstream) DO UPDATE SET
    account_id = excluded.account_id, number = excluded.number, credential = excluded.credential, model = excluded.model,
    input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, items = excluded.items,
    item_tokens = excluded.item_tokens, expires_at = excluded.expires_at
  WHERE known.account_id = excluded.account_id OR known.expires_at < now()
  RETURNING account_id, number`;

const UNIQUE_VIOLATION = '23505';

async function insert(database: Knex, rows: readonly Row[]): Promise<readonly Stored[]> {
  for (let draw = 1; ; draw += 1) {
    try {
      const written = await database.raw<{ rows: Stored[] }>(INSERT, { rows: JSON.stringify(oneOfEach(rows)) });
      return written.rows;
    } catch (error) {
      if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION || draw === DRAWS_AT_MOST) throw error;
    }
  }
}

/** Returns one row for each object, because one statement cannot write an object twice. The first account has it. */
function oneOfEach(rows: readonly Row[]): readonly Row[] {
  const first = new Map<string, Row>();
  for (const row of rows) {
    const key = `${row.kind}\n${row.hash}\n${row.upstream}`;
    if (!first.has(key)) first.set(key, row);
  }
  return [...first.values()];
}

async function dropOldest(database: Knex, stored: readonly Stored[], mostOfAccount: number): Promise<void> {
  const newest = new Map<string, bigint>();
  for (const { account_id: accountId, number } of stored)
    if (number > (newest.get(accountId) ?? BigInt(mostOfAccount))) newest.set(accountId, number);
  for (const [accountId, number] of newest)
    await database('kept_objects')
      .where('account_id', accountId)
      .where('number', '<=', String(number - BigInt(mostOfAccount)))
      .delete();
}

interface StoredObject {
  readonly upstream: string;
  readonly credential: string;
  readonly model: string;
  readonly input_tokens: bigint | null;
  readonly output_tokens: bigint | null;
}

/** Finds an object. Ids are random, so if two upstreams created the same id, the newer one counts. */
async function findStored(
  database: Knex,
  accountId: string,
  kind: SharedObject,
  hash: string,
): Promise<KeptObject | undefined> {
  try {
    const row = await database('kept_objects')
      .first<StoredObject>('upstream', 'credential', 'model', 'input_tokens', 'output_tokens')
      .where({ kind, hash: Buffer.from(hash, 'hex'), account_id: accountId })
      .where('expires_at', '>', database.fn.now())
      .orderBy('number', 'desc');
    if (row === undefined) return undefined;
    const { upstream, credential, model } = row;
    return {
      upstream,
      credential,
      model,
      inputTokens: count(row.input_tokens),
      outputTokens: count(row.output_tokens),
    };
  } catch (error) {
    throw isDatabaseUnavailable(error) ? databaseUnavailable(error) : error;
  }
}

interface StoredItem {
  readonly item: string;
  readonly owner: string;
  readonly account_id: string;
  readonly upstream: string;
  readonly credential: string;
  readonly item_tokens: bigint | null;
}

/**
 * Finds items by their hashes. The condition on items stands alone, because with a second one Postgres would also read the index
 * of all the account's objects. The hashes come from a subquery, because for many known ones Postgres would plan to find most of
 * the table.
 */
const FIND_ITEMS = `
  SELECT replace(item::text, '-', '') AS item, encode(hash, 'hex') AS owner, account_id, upstream, credential, item_tokens
  FROM (
    SELECT * FROM kept_objects
    WHERE items && (SELECT array_agg(named::uuid) FROM jsonb_array_elements_text(:hashes::jsonb) AS named) OFFSET 0
  ) AS found, unnest(items) AS item
  WHERE expires_at > now()
  ORDER BY expires_at`;

/**
 * Returns items of an account by their hash. An item in the answers to two accounts stays with the first account. If two upstreams
 * created it, the newer one counts.
 */
async function findStoredItems(
  database: Knex,
  accountId: string,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, KeptItem>> {
  try {
    const { rows } = await database.raw<{ rows: StoredItem[] }>(FIND_ITEMS, { hashes: JSON.stringify(hashes) });
    const first = new Map<string, StoredItem>();
    for (const row of rows) {
      const key = `${row.item}\n${row.upstream}`;
      if (!first.has(key)) first.set(key, row);
    }
    const own = [...first.values()].filter((row) => row.account_id === accountId);
    return new Map(own.map((row) => [row.item, storedItem(row)]));
  } catch (error) {
    throw isDatabaseUnavailable(error) ? databaseUnavailable(error) : error;
  }
}

function storedItem({ owner, upstream, credential, item_tokens: tokens }: StoredItem): KeptItem {
  return { owner, upstream, credential, tokens: count(tokens) };
}

function count(tokens: bigint | null): number | undefined {
  return tokens === null ? undefined : Number(tokens);
}
