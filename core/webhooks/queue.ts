import type { Knex } from 'knex';
import { newId } from '../base/ids';
import { showFeedEvent } from '../events/event';
import { writeEvents } from '../events/raise';
import type { SendOutcome, WebhookAttempt } from './send';
import type { WebhookSecret } from './signature';

/** How long an attempt may take, and when failed ones are repeated. */
export interface DeliveryTimes {
  /** How long a receiver may take to answer, from the begin of the connection. */
  readonly answerWithinMs: number;
  /** The pause after the first failure, the second and so on; the last one repeats. */
  readonly pausesMs: readonly number[];
  /** How long after the first failure the last attempt is made. If it fails, the webhook is disabled. */
  readonly forMs: number;
}

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

export const DELIVERY_TIMES: DeliveryTimes = {
  answerWithinMs: 10 * SECOND_MS,
  pausesMs: [5 * SECOND_MS, 30 * SECOND_MS, 120 * SECOND_MS, 600 * SECOND_MS, HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS],
  forMs: 72 * HOUR_MS,
};

/** How long a process keeps a webhook to itself after its last sign of life; longer than an attempt, so that no other process makes the same. */
const CLAIM_MS = DELIVERY_TIMES.answerWithinMs + 5_000;

/** The webhooks that this process delivers to, each with the id of its claim. */
export interface WebhookClaim {
  readonly webhookId: string;
  readonly claim: string;
}

/** A delivery that is due. `place` is null if it waits for no other and is tried once. */
export interface DueDelivery extends WebhookAttempt {
  readonly deliveryId: string;
  readonly accountId: string;
  readonly type: string;
  readonly place: bigint | null;
  readonly attempts: number;
  /** How long ago the first attempt failed; null if none did. */
  readonly failingMs: number | null;
}

/**
 * The pending deliveries that a webhook may get next: each one without a place, and the first of the others if the webhook is active. Later
 * ones wait for the first, also while it waits for its retry.
 */
const NEXT = `
  (SELECT * FROM webhook_deliveries
   WHERE webhook_id = webhook.id AND status = 'pending' AND place IS NULL ORDER BY next_at LIMIT 1)
  UNION ALL
  (SELECT * FROM webhook_deliveries
   WHERE webhook_id = webhook.id AND status = 'pending' AND place IS NOT NULL AND webhook.status = 'active'
   ORDER BY place LIMIT 1)`;

/** A webhook with something to deliver. */
export interface DueWebhook {
  readonly webhookId: string;
  readonly accountId: string;
  /** In how many milliseconds something is due, or the claim of another process ends. */
  readonly inMs: number;
}

/** Returns the webhooks with something to deliver, the longest due first; of each account `ofAccount` at most. */
export async function findDue(database: Knex, limit: number, ofAccount: number): Promise<readonly DueWebhook[]> {
  const { rows } = await database.raw<{ rows: DueWebhook[] }>(
    `SELECT "webhookId", "accountId", "inMs" FROM (
       SELECT id::text AS "webhookId", account_id::text AS "accountId",
         (extract(epoch FROM at - clock_timestamp()) * 1000)::float8 AS "inMs",
         row_number() OVER (PARTITION BY account_id ORDER BY at) AS turn
       FROM webhooks AS webhook CROSS JOIN LATERAL
         (SELECT greatest(min(next_at), claimed_until) AS at, count(*) AS waiting FROM (${NEXT}) AS next) AS due
       WHERE waiting > 0) AS due
     WHERE turn <= :ofAccount ORDER BY "inMs" LIMIT :limit`,
    { limit, ofAccount },
  );
  return rows;
}

/** Claims a webhook for this process. Returns undefined if another process delivers to it. */
export async function claimWebhook(database: Knex, webhookId: string): Promise<WebhookClaim | undefined> {
  const claim = newId();
  const { rows } = await database.raw<{ rows: object[] }>(
    `UPDATE webhooks SET claim = :claim, claimed_until = ${claimEnd()}
     WHERE id = :webhookId AND (claimed_until IS NULL OR claimed_until <= clock_timestamp()) RETURNING 1`,
    { webhookId, claim },
  );
  return rows.length === 0 ? undefined : { webhookId, claim };
}

function claimEnd(): string {
  return `clock_timestamp() + interval '${CLAIM_MS} milliseconds'`;
}

export async function releaseWebhook(database: Knex, { webhookId, claim }: WebhookClaim): Promise<void> {
  await database('webhooks').where({ id: webhookId, claim }).update({ claim: null, claimed_until: null });
}

interface NextRow extends Omit<DueDelivery, 'body'> {
  readonly body: string | null;
  readonly sequence: bigint;
  readonly at: Date;
  readonly data: object | null;
}

/** Returns the delivery that is due at a claimed webhook, and extends the claim. Returns undefined if none is, or if the claim is lost. */
export async function nextDelivery(
  database: Knex,
  { webhookId, claim }: WebhookClaim,
): Promise<DueDelivery | undefined> {
  const { rows } = await database.raw<{ rows: NextRow[] }>(
    `WITH webhook AS (
       UPDATE webhooks SET claimed_until = ${claimEnd()} WHERE id = :webhookId AND claim = :claim RETURNING *)
     SELECT webhook.id::text AS "webhookId", webhook.account_id::text AS "accountId", url, secrets,
       next.id::text AS "deliveryId", event_id::text AS "eventId", next.type, next.place, body, attempts,
       (extract(epoch FROM clock_timestamp() - first_failed_at) * 1000)::float8 AS "failingMs",
       events.sequence, events.created_at AS at, events.data
     FROM webhook CROSS JOIN LATERAL (${NEXT}) AS next LEFT JOIN events ON events.id = event_id
     WHERE next_at <= clock_timestamp() ORDER BY next.place NULLS FIRST LIMIT 1`,
    { webhookId, claim },
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { sequence, at, data, body, ...due } = row;
  const { eventId: id, accountId: account_id, type } = due;
  const shown = () => showFeedEvent({ id, account_id, type, data: data ?? {}, created_at: at }, sequence);
  return { ...due, secrets: due.secrets as readonly WebhookSecret[], body: body ?? JSON.stringify(shown()) };
}

/** What becomes of a delivery after an attempt. `isOver`: its webhook is disabled. */
export type DeliveryVerdict =
  | { readonly status: 'delivered' | 'failed'; readonly isOver: boolean }
  | { readonly status: 'pending'; readonly isOver: false; readonly retryAfterMs: number };

/** Decides what becomes of a delivery after an attempt. */
export function judge(
  { place, attempts, failingMs }: DueDelivery,
  { error }: SendOutcome,
  times: DeliveryTimes,
): DeliveryVerdict {
  if (error === null) return { status: 'delivered', isOver: false };
  if (place === null) return { status: 'failed', isOver: false };
  const leftMs = times.forMs - (failingMs ?? 0);
  if (leftMs <= 0) return { status: 'failed', isOver: true };
  const pauseMs = times.pausesMs[Math.min(attempts, times.pausesMs.length - 1)] ?? 0;
  return { status: 'pending', isOver: false, retryAfterMs: Math.min(pauseMs, leftMs) };
}

/** Writes the outcome of an attempt. Writes nothing, and returns false, if the process has lost its claim. */
export async function record(
  database: Knex,
  { webhookId, claim }: WebhookClaim,
  { deliveryId, accountId, url, eventId }: DueDelivery,
  { responseStatus, error }: SendOutcome,
  verdict: DeliveryVerdict,
): Promise<boolean> {
  return database.transaction(async (transaction) => {
    const isMine = await transaction('webhooks')
      .where({ id: webhookId, claim })
      .update({ claimed_until: transaction.raw(claimEnd()), ...(verdict.isOver && { status: 'disabled' }) });
    if (isMine === 0) return false;
    const retryMs = verdict.status === 'pending' ? verdict.retryAfterMs : undefined;
    await transaction.raw(
      `UPDATE webhook_deliveries SET status = :status, attempts = attempts + 1, response_status = :responseStatus,
         error = :error, next_at = clock_timestamp() + make_interval(secs => :retrySeconds::float8),
         first_failed_at = CASE WHEN :error::text IS NULL THEN NULL ELSE coalesce(first_failed_at, clock_timestamp()) END
       WHERE id = :deliveryId`,
      {
        deliveryId,
        status: verdict.status,
        responseStatus,
        error,
        retrySeconds: retryMs === undefined ? null : retryMs / 1_000,
      },
    );
    if (!verdict.isOver) return true;
    const data = { webhookId, url, eventId, error };
    await writeEvents(transaction, [{ type: 'webhook.disabled', accountId, once: `${webhookId} ${deliveryId}`, data }]);
    return true;
  });
}
