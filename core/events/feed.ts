import type { Knex } from 'knex';
import type { Page } from '../storage/page';
import { type EventRow, type ShownEvent, showFeedEvent } from './event';

/** How many days events and deliveries are kept. */
const KEPT_DAYS = 30;

const KEPT = `now() - interval '${KEPT_DAYS} days'`;

interface FeedRequest {
  /** The number of the last event that the reader has; 0 for none. */
  readonly after: number;
  readonly limit: number;
}

/** Returns the next events of an account, oldest first, with their numbers in the account's feed. */
export function listAccountEvents(database: Knex, accountId: string, asked: FeedRequest): Promise<Page<ShownEvent>> {
  return readFeed(database, 'sequence', { account_id: accountId }, asked);
}

/** Returns the next events of the operators' feed, oldest first; `accountId`: only those of an account, with the same numbers. */
export function listOperatorEvents(
  database: Knex,
  accountId: string | undefined,
  asked: FeedRequest,
): Promise<Page<ShownEvent>> {
  return readFeed(database, 'feed_sequence', accountId === undefined ? {} : { account_id: accountId }, asked);
}

async function readFeed(
  database: Knex,
  number: 'sequence' | 'feed_sequence',
  of: object,
  { after, limit }: FeedRequest,
): Promise<Page<ShownEvent>> {
  const rows: EventRow[] = await database<EventRow>('events')
    .where(of)
    .where(number, '>', after)
    .whereRaw(`created_at > ${KEPT}`)
    .orderBy(number)
    .limit(limit + 1);
  const items = rows.slice(0, limit).map((row) => showFeedEvent(row, row[number]));
  return { items, nextCursor: rows.length > limit ? String(items.at(-1)?.sequence) : null };
}

/**
 * Deletes events and deliveries that are no longer shown. An event outlives its deliveries, which have their body from it, and stays while
 * its fact could otherwise be reported again.
 */
export async function deleteOldEvents(database: Knex): Promise<void> {
  await database('webhook_deliveries').whereRaw(`created_at <= ${KEPT}`).delete();
  await database('events')
    .whereRaw(`created_at <= ${KEPT} - interval '1 day' AND (kept_until IS NULL OR kept_until <= now())`)
    .delete();
}
