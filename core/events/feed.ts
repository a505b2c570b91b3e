import type { Knex } from 'knex';
import type { Page } from '../storage/page';
import { type EventRow, type ShownEvent, showFeedEvent } from './event';

/** How many days events and deliveries are kept. */
const KEPT_DAYS = 30;

const KEPT = `now() - interval '${KEPT_DAYS} days'`;

interface FeedRequest {
  /** The number of the last event that the reader has; 0 for none. */
  readonly after: number;
  /** The number of the first event that the reader has; undefined for none. The newest events before it come first. */
  readonly before?: number | undefined;
  readonly order?: 'oldest' | 'newest' | undefined;
  readonly limit: number;
}

/** Returns the next events of an account in the asked order, with their numbers in the account's feed. */
export function listAccountEvents(database: Knex, accountId: string, asked: FeedRequest): Promise<Page<ShownEvent>> {
  return readFeed(database, 'sequence', { account_id: accountId }, asked);
}

/** Returns the next events of the operators' feed in the asked order; `accountId`: only those of an account, with the same numbers. */
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
  { after, before, order, limit }: FeedRequest,
): Promise<Page<ShownEvent>> {
  const rows: EventRow[] = await database<EventRow>('events')
    .where(of)
    .where(number, '>', after)
    .where((query) => (before === undefined ? query : query.where(number, '<', before)))
    .whereRaw(`created_at > ${KEPT}`)
    .orderBy(number, order === 'newest' ? 'desc' : 'asc')
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
