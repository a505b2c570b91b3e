import type { Knex } from 'knex';
import { newId } from '../base/ids';
import { showFeedEvent } from '../events/event';
import { announceDeliveries } from '../events/raise';
import { existing, idIs, newestPage, type Page, type PageRequest } from '../storage/page';
import { audit, lockWebhook, requireWebhook, type WebhookName } from './webhooks';

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const;

/** What a webhook receives, with the outcome of its last attempt. */
export interface WebhookDelivery {
  readonly id: string;
  readonly eventId: string;
  readonly type: string;
  readonly status: (typeof DELIVERY_STATUSES)[number];
  /** How many attempts have ended since the webhook was last changed. */
  readonly attempts: number;
  /** The status of the receiver's last answer; null without one. */
  readonly responseStatus: number | null;
  /** Why the last attempt failed; null if it did not. */
  readonly error: string | null;
  /** When the next attempt is due; null if there is none. */
  readonly nextAttemptAt: Date | null;
  readonly createdAt: Date;
}

interface DeliveryRow {
  readonly id: string;
  readonly event_id: string;
  readonly type: string;
  readonly status: WebhookDelivery['status'];
  readonly attempts: number;
  readonly response_status: number | null;
  readonly error: string | null;
  readonly next_at: Date | null;
  readonly created_at: Date;
}

/** Lists the deliveries of a webhook, newest first. @throws NOT_FOUND */
export async function listDeliveries(
  database: Knex,
  name: WebhookName,
  asked: PageRequest,
): Promise<Page<WebhookDelivery>> {
  await requireWebhook(database, name);
  const query = database('webhook_deliveries').where({ webhook_id: name.webhookId });
  return newestPage(query, asked, async (row: DeliveryRow) => toDelivery(row));
}

/**
 * Queues an event `webhook.test`, which is in no feed and waits for no other delivery. A disabled webhook receives it too, and it is tried
 * once. @throws NOT_FOUND
 */
export function testWebhook(database: Knex, name: WebhookName, actor: string): Promise<WebhookDelivery> {
  return database.transaction(async (transaction) => {
    const { id: webhookId, account_id } = await lockWebhook(transaction, name);
    const now = new Date();
    const event = { id: newId(), account_id, type: 'webhook.test', data: { webhookId }, created_at: now };
    const row = {
      ...{ id: newId(), webhook_id: webhookId, event_id: event.id, type: event.type },
      ...{ body: JSON.stringify(showFeedEvent(event, 0n)), next_at: transaction.fn.now(), created_at: now },
    };
    const [queued] = await transaction('webhook_deliveries').insert(row).returning<DeliveryRow[]>('*');
    await audit(transaction, { actor, action: 'webhook.test' }, webhookId);
    await announceDeliveries(transaction);
    return toDelivery(queued as DeliveryRow);
  });
}

/**
 * Sends a delivery once more, with the same id and body. One that waits for its retry is due now and keeps its place; any other is tried
 * once and waits for no other. @throws NOT_FOUND
 */
export function redeliver(
  database: Knex,
  name: WebhookName,
  deliveryId: string,
  actor: string,
): Promise<WebhookDelivery> {
  return database.transaction(async (transaction) => {
    const { id: webhookId } = await lockWebhook(transaction, name);
    const of = transaction('webhook_deliveries').where({ webhook_id: webhookId });
    const [changed] = await of
      .where(idIs(deliveryId))
      .update({
        place: transaction.raw("CASE WHEN status = 'pending' THEN place END"),
        status: 'pending',
        next_at: transaction.fn.now(),
      })
      .returning<DeliveryRow[]>('*');
    const row = existing(changed, 'delivery');
    await audit(transaction, { actor, action: 'webhook.redeliver' }, webhookId, { after: { deliveryId } });
    await announceDeliveries(transaction);
    return toDelivery(row);
  });
}

function toDelivery(row: DeliveryRow): WebhookDelivery {
  const { id, event_id: eventId, type, status, attempts, error } = row;
  const { response_status: responseStatus, next_at: nextAttemptAt, created_at: createdAt } = row;
  return { id, eventId, type, status, attempts, responseStatus, error, nextAttemptAt, createdAt };
}
