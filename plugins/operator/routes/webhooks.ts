import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import {
  DELIVERY,
  MADE_WEBHOOK,
  NEW_WEBHOOK,
  showMadeWebhook,
  WEBHOOK,
  WEBHOOK_CHANGES,
  WEBHOOK_ROTATION,
} from '../../../core/api/webhook-fields';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { PAGE_READERS, pageOf } from '../../../core/http/query';
import { pageShape } from '../../../core/http/shape';
import { listDeliveries, redeliver, testWebhook } from '../../../core/webhooks/deliveries';
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  rotateWebhook,
  updateWebhook,
} from '../../../core/webhooks/webhooks';

const SHOWN = { 200: { description: 'The webhook.', schema: WEBHOOK } };
const MADE = { 201: { description: 'The webhook with its secret, which is shown only now.', schema: MADE_WEBHOOK } };
const QUEUED = { 202: { description: 'The delivery, which is attempted at once.', schema: DELIVERY } };

export function webhookRoutes({ database, webhookRules }: PluginGateway): readonly Route[] {
  return [
    adminRoute('POST /admin/v1/accounts/{accountId}/webhooks', {
      role: 'write',
      summary: 'Create a webhook that receives the events of an account; only this answer contains its secret.',
      body: NEW_WEBHOOK,
      answers: MADE,
      errors: ['CONFLICT'],
      handle: async ({ body, params, operator }) =>
        showMadeWebhook(await createWebhook(database, webhookRules, params.accountId, body, operator.actor)),
    }),
    adminRoute('GET /admin/v1/accounts/{accountId}/webhooks', {
      role: 'read',
      summary: 'List the webhooks of an account, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of webhooks.', schema: pageShape(WEBHOOK) } },
      handle: ({ params, filters }) => listWebhooks(database, params.accountId, pageOf(filters)),
    }),
    adminRoute('PATCH /admin/v1/webhooks/{webhookId}', {
      role: 'write',
      summary: 'Change, disable or enable a webhook; an enabled one continues with what is pending.',
      body: WEBHOOK_CHANGES,
      answers: SHOWN,
      handle: ({ body, params, operator }) => updateWebhook(database, webhookRules, params, body, operator.actor),
    }),
    adminRoute('DELETE /admin/v1/webhooks/{webhookId}', {
      role: 'write',
      summary: 'Delete a webhook with its deliveries.',
      answers: SHOWN,
      handle: ({ params, operator }) => deleteWebhook(database, params, operator.actor),
    }),
    adminRoute('POST /admin/v1/webhooks/{webhookId}/rotate', {
      role: 'write',
      summary: 'Give a webhook a new secret, which only this answer contains; the previous one signs too in the grace.',
      body: WEBHOOK_ROTATION,
      answers: MADE,
      handle: async ({ body, params, operator }) =>
        showMadeWebhook(await rotateWebhook(database, params, body.graceSeconds, operator.actor)),
    }),
    adminRoute('POST /admin/v1/webhooks/{webhookId}/test', {
      role: 'write',
      summary: 'Send a signed `webhook.test`, which is in no feed, also to a disabled webhook.',
      answers: QUEUED,
      handle: ({ params, operator }) => testWebhook(database, params, operator.actor),
    }),
    ...deliveryRoutes(database),
  ];
}

function deliveryRoutes(database: PluginGateway['database']): readonly Route[] {
  return [
    adminRoute('GET /admin/v1/webhooks/{webhookId}/deliveries', {
      role: 'read',
      summary: 'List what a webhook has received or is about to, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of deliveries.', schema: pageShape(DELIVERY) } },
      handle: ({ params, filters }) => listDeliveries(database, params, pageOf(filters)),
    }),
    adminRoute('POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver', {
      role: 'write',
      summary: 'Send a delivery again, with the same id and body.',
      answers: QUEUED,
      handle: ({ params: { webhookId, deliveryId }, operator }) =>
        redeliver(database, { webhookId }, deliveryId, operator.actor),
    }),
  ];
}
