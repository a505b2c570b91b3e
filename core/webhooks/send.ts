import { Client } from 'undici';
import { AddressRefused, classifyDialFailure, type Egress } from '../wire/egress';
import { webhookUrlProblem } from './address';
import { signatures, type WebhookSecret } from './signature';
import type { WebhookRules } from './webhooks';

/** One attempt to deliver an event. */
export interface WebhookAttempt {
  readonly webhookId: string;
  readonly url: string;
  readonly secrets: readonly WebhookSecret[];
  readonly eventId: string;
  readonly body: string;
}

/** How an attempt ended. It has delivered the event if there is no error. */
export interface SendOutcome {
  readonly responseStatus: number | null;
  readonly error: string | null;
}

/** How much of the answer's body is read, so that usual receivers see a whole request. The rest is not received. */
const READ_BYTES = 16_384;

/** How long the body of an answer is read, because the status alone decides. */
const READ_MS = 1_000;

/**
 * Sends an event to a webhook, signed. The connection is one of its own, opened to an address that was checked. Only the statuses 200 to
 * 299 deliver; redirects are not followed. Rejects only if `stopping` is aborted.
 */
export async function sendWebhook(
  egress: Egress,
  { allowPrivate }: WebhookRules,
  answerWithinMs: number,
  { webhookId, url: text, secrets, eventId, body }: WebhookAttempt,
  stopping: AbortSignal,
): Promise<SendOutcome> {
  const problem = webhookUrlProblem(text, allowPrivate);
  if (problem !== undefined) return { responseStatus: null, error: `The URL is not allowed: ${problem}.` };
  const url = new URL(text);
  const ms = answerWithinMs;
  const timeouts = { connectMs: ms, headersMs: ms, idleMs: ms };
  const connect = egress.connector({ name: `webhook ${webhookId}`, url, allowPrivate, timeouts });
  const client = new Client(url.origin, { connect, pipelining: 1, headersTimeout: ms, bodyTimeout: ms });
  const late = AbortSignal.timeout(ms);
  try {
    const timestamp = Math.floor(Date.now() / 1_000);
    const answer = await client.request({
      method: 'POST',
      path: url.pathname + url.search,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Tollgate-Webhooks',
        'webhook-id': eventId,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatures({ id: eventId, timestamp, body }, secrets),
      },
      body,
      signal: AbortSignal.any([stopping, late]),
    });
    await answer.body.dump({ limit: READ_BYTES, signal: AbortSignal.timeout(READ_MS) }).catch(() => undefined);
    return outcomeOf(answer.statusCode);
  } catch (error) {
    if (stopping.aborted) throw error;
    return { responseStatus: null, error: late.aborted ? TOO_LATE : reasonOf(error) };
  } finally {
    await client.destroy();
  }
}

function outcomeOf(responseStatus: number): SendOutcome {
  if (responseStatus >= 200 && responseStatus < 300) return { responseStatus, error: null };
  const redirect = responseStatus >= 300 && responseStatus < 400 ? ', and redirects are not followed' : '';
  return { responseStatus, error: `The receiver answered ${responseStatus}${redirect}.` };
}

const TOO_LATE = 'The receiver did not answer in time.';

/** Returns why there was no answer. It does not tell the account which addresses a name has in the network of the gateway. */
function reasonOf(error: unknown): string {
  if (error instanceof AddressRefused) return 'The host of the URL has an address that is not public.';
  const reasons = {
    connect_failed: 'No connection could be made.',
    timeout: TOO_LATE,
    reset: 'The connection ended before a valid answer.',
    cancelled: 'The attempt was cancelled.',
  };
  return reasons[classifyDialFailure(error)];
}
