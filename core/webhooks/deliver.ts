import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { onFirstFailure, startLoop } from '../base/loop';
import { metrics } from '../base/metrics';
import type { Stop } from '../base/resources';
import { safeErrorFields } from '../base/safe-error';
import { DELIVERIES } from '../events/raise';
import { listenForNotifications } from '../storage/notifications';
import type { Egress } from '../wire/egress';
import {
  claimWebhook,
  DELIVERY_TIMES,
  type DeliveryTimes,
  type DueDelivery,
  type DueWebhook,
  findDue,
  judge,
  nextDelivery,
  record,
  releaseWebhook,
  type WebhookClaim,
} from './queue';
import { sendWebhook } from './send';
import type { WebhookRules } from './webhooks';

interface DeliverOptions {
  readonly database: Knex;
  readonly egress: Egress;
  readonly rules: WebhookRules;
  readonly log: Logger;
  readonly times?: DeliveryTimes;
}

/** How many webhooks a process delivers to at once, in all and of one account, whose receivers may all be slow. */
const AT_ONCE = 32;
const AT_ONCE_OF_ACCOUNT = 4;

/** How often a process looks for deliveries without a notification. Notifications announce new ones at once, unless the connection was lost. */
const LOOK_EVERY_MS = 15_000;
const LOOK_AT_REST_EVERY_MS = 60_000;
const LEAST_PAUSE_MS = 50;
/** The pause after a look that failed. */
const AFTER_FAILURE_MS = 1_000;

const attempts = new Counter({
  name: 'tollgate_webhook_attempts_total',
  help: 'Attempts to deliver an event to a webhook, by how they ended: delivered, retried or failed.',
  labelNames: ['outcome'],
  registers: [metrics],
});
const disabled = new Counter({
  name: 'tollgate_webhooks_disabled_total',
  help: 'Webhooks that were disabled because a delivery failed for three days.',
  registers: [metrics],
});

/**
 * Delivers events to webhooks. Every process with background work delivers; the claim of a webhook lets one process at a time send to it,
 * in order. A process that dies leaves its claim, and the next one repeats the attempt whose outcome was not written, with the same id.
 */
export async function startDeliveries(options: DeliverOptions): Promise<{ readonly stop: Stop }> {
  const { database, log } = options;
  const stopping = new AbortController();
  const running = new Map<string, { readonly accountId: string; readonly work: Promise<void> }>();
  let dueInMs = LOOK_EVERY_MS;

  const runningOf = (account: string) => [...running.values()].filter(({ accountId }) => accountId === account).length;

  const begin = ({ webhookId, accountId }: DueWebhook) => {
    const work = deliverTo(options, webhookId, stopping.signal).then(
      () => {
        running.delete(webhookId);
        loop.wake();
      },
      // The next look retries it. An immediate one would fail as fast as the database refuses.
      (error) => {
        running.delete(webhookId);
        if (!stopping.signal.aborted)
          log.warn({ webhookId, error: safeErrorFields(error) }, 'a webhook could not be served; it is retried');
      },
    );
    running.set(webhookId, { accountId, work });
  };

  const look = async () => {
    dueInMs = AFTER_FAILURE_MS;
    const found = await findDue(database, AT_ONCE * 2, AT_ONCE_OF_ACCOUNT * 2);
    const due = found.filter(({ webhookId }) => !running.has(webhookId));
    for (const each of due.filter(({ inMs }) => inMs <= 0))
      if (running.size < AT_ONCE && runningOf(each.accountId) < AT_ONCE_OF_ACCOUNT) begin(each);
    // A webhook for which there is no room is served when another one is finished, or at the next look.
    const [later] = due.filter(({ inMs }) => inMs > 0);
    dueInMs = Math.max(LEAST_PAUSE_MS, Math.min(later?.inMs ?? LOOK_EVERY_MS, LOOK_EVERY_MS));
  };

  const loop = startLoop(look, {
    everyMs: () => dueInMs,
    atRestMs: () => (dueInMs < LOOK_EVERY_MS ? dueInMs : LOOK_AT_REST_EVERY_MS),
    whenFailed: onFirstFailure((error) =>
      log.warn({ error: safeErrorFields(error) }, 'deliveries of webhooks could not be read; the read is retried'),
    ),
  });
  const stopListening = await listenForNotifications(database, DELIVERIES, log, loop.wake);
  return {
    stop: async () => {
      stopping.abort();
      await stopListening();
      await loop.stop();
      await Promise.all([...running.values()].map(({ work }) => work));
    },
  };
}

/** Sends what is due at a webhook, one after the other, unless another process does. */
async function deliverTo(options: DeliverOptions, webhookId: string, stopping: AbortSignal): Promise<void> {
  const { database } = options;
  const claim = await claimWebhook(database, webhookId);
  if (claim === undefined) return;
  try {
    let due = await nextDelivery(database, claim);
    while (due !== undefined) {
      await deliverOne(options, claim, due, stopping);
      due = await nextDelivery(database, claim);
    }
  } catch (error) {
    // After a failure the claim stays until it ends, which is the pause before the retry.
    if (!stopping.aborted) throw error;
  }
  await releaseWebhook(database, claim);
}

async function deliverOne(
  { database, egress, rules, log, times = DELIVERY_TIMES }: DeliverOptions,
  claim: WebhookClaim,
  due: DueDelivery,
  stopping: AbortSignal,
): Promise<void> {
  stopping.throwIfAborted();
  const outcome = await sendWebhook(egress, rules, times.answerWithinMs, due, stopping);
  const verdict = judge(due, outcome, times);
  // After the loss of the claim, another process makes the attempt again.
  if (!(await record(database, claim, due, outcome, verdict))) return;
  attempts.inc({ outcome: verdict.status === 'pending' ? 'retried' : verdict.status });
  if (outcome.error === null) return;
  const { webhookId, deliveryId } = due;
  log.info({ webhookId, deliveryId, ...outcome, ...verdict }, 'an event could not be delivered to a webhook');
  if (!verdict.isOver) return;
  disabled.inc();
  log.warn({ webhookId }, 'a webhook was disabled because a delivery failed for three days');
}
