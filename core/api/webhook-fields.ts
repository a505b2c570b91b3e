import { ACCOUNT_EVENTS } from '../events/event';
import { listOf, object, oneOf, orNull, shape } from '../http/shape';
import { DELIVERY_STATUSES } from '../webhooks/deliveries';
import type { Webhook } from '../webhooks/webhooks';
import { ROTATION } from './key-fields';

/** The fields of webhooks in requests and answers of the admin API and the console. */

const URL_FIELD = { type: 'string', minLength: 1, maxLength: 2_000 } as const;

const TYPES = { minItems: 1, uniqueItems: true, items: { enum: ACCOUNT_EVENTS } } as const;

export const NEW_WEBHOOK = {
  type: 'object',
  additionalProperties: false,
  required: ['url'],
  properties: { url: URL_FIELD, types: { ...TYPES, type: ['array', 'null'] } },
  example: { url: 'https://example.com/webhooks', types: ['balance.low', 'budget.reached'] },
} as const;

export const WEBHOOK_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { ...NEW_WEBHOOK.properties, status: { enum: ['active', 'disabled'] } },
  example: { status: 'active' },
} as const;

const { graceSeconds } = ROTATION.properties;

export const WEBHOOK_ROTATION = {
  ...ROTATION,
  properties: {
    graceSeconds: { ...graceSeconds, description: 'How long the previous secret signs too; 0 ends all older ones.' },
  },
} as const;

const WEBHOOK_MEMBERS = {
  id: shape.uuid,
  accountId: shape.uuid,
  url: shape.text,
  types: {
    ...orNull(listOf(oneOf(...ACCOUNT_EVENTS))),
    description: 'The kinds of events that it receives; null for all.',
  },
  status: oneOf('active', 'disabled'),
  createdAt: shape.time,
};

export const WEBHOOK = object(WEBHOOK_MEMBERS);

/** A webhook with a secret that only this answer contains. */
export const MADE_WEBHOOK = object({ ...WEBHOOK_MEMBERS, secret: shape.text });

export function showMadeWebhook({ webhook, secret }: { readonly webhook: Webhook; readonly secret: string }): object {
  return { ...webhook, secret };
}

export const DELIVERY = object({
  id: shape.uuid,
  eventId: shape.uuid,
  type: shape.text,
  status: oneOf(...DELIVERY_STATUSES),
  attempts: shape.integer,
  responseStatus: { ...orNull(shape.integer), description: "The status of the receiver's last answer." },
  error: { ...orNull(shape.text), description: 'Why the last attempt failed.' },
  nextAttemptAt: orNull(shape.time),
  createdAt: shape.time,
});
