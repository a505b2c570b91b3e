import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { isDatabaseUnavailable } from '../base/database-availability';
import { newId } from '../base/ids';
import type { NewEvent } from './event';

/** The channel of Postgres that announces deliveries of webhooks. */
export const DELIVERIES = 'tollgate_deliveries';

/** The operators' feed. It has all events; the other feeds have an account's id. */
const OPERATORS_FEED = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** A new event with its id and its numbers in both feeds. */
interface Numbered extends Omit<NewEvent, 'accountId' | 'keptUntil'> {
  readonly id: string;
  readonly accountId: string | null;
  readonly keptUntil: string | null;
  readonly sequence: number | null;
  readonly feedSequence: number;
}

/**
 * Writes events that do not exist yet, with the deliveries to their accounts' webhooks. Call it last in a transaction: the operators' feed
 * stays locked until the commit, which is what orders all events, and a transaction that waits for another lock meanwhile may deadlock.
 */
export async function writeEvents(transaction: Knex.Transaction, wanted: readonly NewEvent[]): Promise<void> {
  if (wanted.length === 0) return;
  const { last: lastOfAll } = await transaction('event_feeds')
    .where({ feed: OPERATORS_FEED })
    .forUpdate()
    .first('last');
  const fresh = await unwritten(transaction, wanted);
  if (fresh.length === 0) return;
  const lastOf = await readLast(transaction, fresh);
  let feedSequence = Number(lastOfAll);
  const numbered = fresh.map(({ accountId = null, keptUntil = null, ...event }): Numbered => {
    const sequence = accountId === null ? null : (lastOf.get(accountId) ?? 0) + 1;
    if (accountId !== null && sequence !== null) lastOf.set(accountId, sequence);
    feedSequence += 1;
    return { ...event, accountId, keptUntil, id: newId(), sequence, feedSequence };
  });
  await insertEvents(transaction, numbered);
  await writeLast(transaction, new Map([...lastOf, [OPERATORS_FEED, feedSequence]]));
  await queueDeliveries(transaction, numbered);
}

/**
 * Writes events whose failure must not disturb the work that they report, and logs a failure. `database` may be the transaction of that
 * work: a failure then undoes the events only. Returns whether they are written.
 */
export async function raiseEvents(database: Knex, log: Logger, wanted: readonly NewEvent[]): Promise<boolean> {
  if (wanted.length === 0) return true;
  try {
    await database.transaction((transaction) => writeEvents(transaction, wanted));
    return true;
  } catch (error) {
    if (!isDatabaseUnavailable(error))
      log.warn({ types: wanted.map(({ type }) => type), reason: String(error) }, 'events could not be written');
    return false;
  }
}

/** Returns the events that are not written yet, each once. The lock of the operators' feed keeps other processes from writing one now. */
async function unwritten(transaction: Knex, wanted: readonly NewEvent[]): Promise<readonly NewEvent[]> {
  const byName = new Map(wanted.map((event) => [onceOf(event), event]));
  const { rows } = await transaction.raw<{ rows: { once: string }[] }>(
    'SELECT once FROM events JOIN jsonb_array_elements_text(:names::jsonb) AS name ON once = name',
    { names: JSON.stringify([...byName.keys()]) },
  );
  for (const { once } of rows) byName.delete(once);
  return [...byName.values()];
}

/** Returns the name of a fact among all facts, as the column `once` has it. */
function onceOf({ type, once }: Pick<NewEvent, 'type' | 'once'>): string {
  return `${type} ${once}`;
}

async function readLast(transaction: Knex, events: readonly NewEvent[]): Promise<Map<string, number>> {
  const accountIds = [...new Set(events.flatMap(({ accountId }) => accountId ?? []))];
  const rows: { feed: string; last: bigint }[] = await transaction('event_feeds').whereIn('feed', accountIds).select();
  return new Map(rows.map(({ feed, last }) => [feed, Number(last)]));
}

async function writeLast(transaction: Knex, lastOf: ReadonlyMap<string, number>): Promise<void> {
  const rows = [...lastOf].map(([feed, last]) => ({ feed, last }));
  await transaction('event_feeds').insert(rows).onConflict('feed').merge();
}

async function insertEvents(transaction: Knex, events: readonly Numbered[]): Promise<void> {
  const rows = events.map((event) => ({ ...event, once: onceOf(event) }));
  await transaction.raw(
    `INSERT INTO events (id, account_id, sequence, feed_sequence, type, once, data, created_at, kept_until)
     SELECT id, "accountId", sequence, "feedSequence", type, once, data, clock_timestamp(), "keptUntil"
     FROM json_to_recordset(:rows::json) AS event (id uuid, "accountId" uuid, sequence bigint, "feedSequence" bigint,
       type text, once text, data json, "keptUntil" timestamptz)`,
    { rows: JSON.stringify(rows) },
  );
}

interface Subscriber {
  readonly id: string;
  readonly account_id: string;
  readonly types: readonly string[] | null;
}

/** Queues the events for the webhooks of their accounts, also for disabled ones, which then continue where they stopped. */
async function queueDeliveries(transaction: Knex, events: readonly Numbered[]): Promise<void> {
  const accountIds = [...new Set(events.flatMap(({ accountId }) => accountId ?? []))];
  if (accountIds.length === 0) return;
  // The lock keeps the webhooks from being deleted until the commit, because a row without its webhook would undo this transaction.
  const webhooks: Subscriber[] = await transaction('webhooks')
    .whereIn('account_id', accountIds)
    .orderBy('id')
    .forKeyShare()
    .select('id', 'account_id', 'types');
  const rows = events.flatMap(({ id, accountId, type, sequence }) =>
    webhooks
      .filter((webhook) => webhook.account_id === accountId && (webhook.types?.includes(type) ?? true))
      .map((webhook) => ({ webhookId: webhook.id, eventId: id, type, place: sequence })),
  );
  if (rows.length === 0) return;
  // Lists are in the order of ids, but ids of one millisecond are not.
  const ids = rows.map(() => newId()).sort();
  await transaction.raw(
    `INSERT INTO webhook_deliveries (id, webhook_id, event_id, type, place, next_at, created_at)
     SELECT id, "webhookId", "eventId", type, place, clock_timestamp(), clock_timestamp()
     FROM jsonb_to_recordset(:rows::jsonb) AS delivery (id uuid, "webhookId" uuid, "eventId" uuid, type text, place bigint)`,
    { rows: JSON.stringify(rows.map((row, index) => ({ id: ids[index], ...row }))) },
  );
  await announceDeliveries(transaction);
}

/** Wakes the processes that deliver, once the transaction is committed. */
export async function announceDeliveries(transaction: Knex): Promise<void> {
  await transaction.raw("SELECT pg_notify(?, '')", [DELIVERIES]);
}
