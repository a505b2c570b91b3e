import type { Knex } from 'knex';
import { lockAccount, requireAccount } from '../accounts/accounts';
import { fail, invalidParam } from '../base/errors';
import { newId } from '../base/ids';
import type { AccountEventType } from '../events/event';
import { announceDeliveries } from '../events/raise';
import { type AuditEntry, writeAudit } from '../storage/audit';
import { existing, idIs, newestPage, type Page, type PageRequest } from '../storage/page';
import { webhookUrlProblem } from './address';
import { makeSecret, rotated, type WebhookSecret } from './signature';

/** The settings `webhooks` of system.config.yml. */
export interface WebhookRules {
  /** Whether webhooks may have addresses that are not public, and plain HTTP. */
  readonly allowPrivate: boolean;
}

export type WebhookStatus = 'active' | 'disabled';

/** An address that receives the events of an account. */
export interface Webhook {
  readonly id: string;
  readonly accountId: string;
  readonly url: string;
  /** The kinds of events that it receives; null for all. */
  readonly types: readonly string[] | null;
  readonly status: WebhookStatus;
  readonly createdAt: Date;
}

interface WebhookRow {
  readonly id: string;
  readonly account_id: string;
  readonly url: string;
  readonly types: readonly string[] | null;
  readonly status: WebhookStatus;
  /** The newest first. */
  readonly secrets: readonly WebhookSecret[];
  readonly created_at: Date;
}

/** Names a webhook in a request. `accountId`: only if the webhook is of this account. */
export interface WebhookName {
  readonly webhookId: string;
  readonly accountId?: string | undefined;
}

interface NewWebhook {
  readonly url: string;
  readonly types?: readonly AccountEventType[] | null | undefined;
}

/** Changes of a webhook. A member that is absent is not changed; `types: null` stands for all kinds. */
interface WebhookChanges extends Partial<NewWebhook> {
  readonly status?: WebhookStatus | undefined;
}

/** The most webhooks of an account. */
export const MAX_WEBHOOKS = 10;

/** Creates a webhook and returns its secret this only time. @throws NOT_FOUND; INVALID_FIELD for a wrong URL; CONFLICT above `MAX_WEBHOOKS` */
export async function createWebhook(
  database: Knex,
  rules: WebhookRules,
  accountId: string,
  { url, types = null }: NewWebhook,
  actor: string,
): Promise<{ readonly webhook: Webhook; readonly secret: string }> {
  await requireAccount(database, accountId);
  checkUrl(url, rules);
  const secret = makeSecret();
  const row: WebhookRow = {
    ...{ id: newId(), account_id: accountId, url, types, status: 'active' },
    ...{ secrets: [{ secret }], created_at: new Date() },
  };
  await database.transaction(async (transaction) => {
    await lockAccount(transaction, accountId);
    await assertRoom(transaction, accountId);
    await transaction('webhooks').insert(columnsOf(row));
    await audit(transaction, { actor, action: 'webhook.create' }, row.id, { after: audited(row) });
  });
  return { webhook: toWebhook(row), secret };
}

/** @throws CONFLICT if the account, which the caller has locked, has as many webhooks as it may have */
async function assertRoom(transaction: Knex.Transaction, accountId: string): Promise<void> {
  const [counted] = await transaction('webhooks').where({ account_id: accountId }).count({ webhooks: '*' });
  if (Number(counted?.['webhooks']) < MAX_WEBHOOKS) return;
  throw fail('CONFLICT', { message: `The account already has ${MAX_WEBHOOKS} webhooks. Remove one first.` });
}

/** @throws INVALID_FIELD */
function checkUrl(url: string, { allowPrivate }: WebhookRules): void {
  const problem = webhookUrlProblem(url, allowPrivate);
  if (problem !== undefined) throw invalidParam('url', problem);
}

/** Lists the webhooks of an account, newest first. @throws NOT_FOUND */
export async function listWebhooks(database: Knex, accountId: string, asked: PageRequest): Promise<Page<Webhook>> {
  await requireAccount(database, accountId);
  const query = database<WebhookRow>('webhooks').where({ account_id: accountId });
  return newestPage(query, asked, async (row: WebhookRow) => toWebhook(row));
}

/** Changes a webhook. One that becomes active continues with the deliveries that are pending. @throws NOT_FOUND, INVALID_FIELD */
export function updateWebhook(
  database: Knex,
  rules: WebhookRules,
  name: WebhookName,
  changes: WebhookChanges,
  actor: string,
): Promise<Webhook> {
  return database.transaction(async (transaction) => {
    const before = await lockWebhook(transaction, name);
    if (changes.url !== undefined) checkUrl(changes.url, rules);
    const after: WebhookRow = {
      ...before,
      url: changes.url ?? before.url,
      types: changes.types === undefined ? before.types : changes.types,
      status: changes.status ?? before.status,
    };
    await transaction('webhooks').where({ id: before.id }).update(columnsOf(after));
    const change = { before: audited(before), after: audited(after) };
    await audit(transaction, { actor, action: 'webhook.update' }, before.id, change);
    await makeDue(transaction, before.id);
    return toWebhook(after);
  });
}

/** Ends the wait for the retry of a failed delivery, because the webhook was changed. Its pauses and its three days begin again. */
async function makeDue(transaction: Knex.Transaction, webhookId: string): Promise<void> {
  await transaction('webhook_deliveries')
    .where({ webhook_id: webhookId, status: 'pending' })
    .whereNotNull('first_failed_at')
    .update({ next_at: transaction.fn.now(), first_failed_at: null, attempts: 0 });
  await announceDeliveries(transaction);
}

/** Deletes a webhook with its deliveries. @throws NOT_FOUND */
export function deleteWebhook(database: Knex, name: WebhookName, actor: string): Promise<Webhook> {
  return database.transaction(async (transaction) => {
    const row = await lockWebhook(transaction, name);
    await audit(transaction, { actor, action: 'webhook.delete' }, row.id, { before: audited(row) });
    await transaction('webhooks').where({ id: row.id }).delete();
    return toWebhook(row);
  });
}

/** Gives a webhook a new secret and returns it this only time. The previous one signs too until the grace period ends. @throws NOT_FOUND */
export function rotateWebhook(
  database: Knex,
  name: WebhookName,
  graceSeconds: number,
  actor: string,
): Promise<{ readonly webhook: Webhook; readonly secret: string }> {
  return database.transaction(async (transaction) => {
    const row = await lockWebhook(transaction, name);
    const secrets = rotated(row.secrets, graceSeconds, Date.now());
    await transaction('webhooks')
      .where({ id: row.id })
      .update({ secrets: JSON.stringify(secrets) });
    await audit(transaction, { actor, action: 'webhook.rotate' }, row.id, { after: { graceSeconds } });
    return { webhook: toWebhook(row), secret: secrets[0]?.secret ?? '' };
  });
}

/** Locks a webhook that the caller changes. @throws NOT_FOUND */
export async function lockWebhook(transaction: Knex.Transaction, name: WebhookName): Promise<WebhookRow> {
  return existing(await webhookQuery(transaction, name).forNoKeyUpdate().first(), 'webhook');
}

/** Checks that a webhook exists. @throws NOT_FOUND */
export async function requireWebhook(database: Knex, name: WebhookName): Promise<void> {
  existing(await webhookQuery(database, name).first(), 'webhook');
}

function webhookQuery(database: Knex, { webhookId, accountId }: WebhookName): Knex.QueryBuilder<WebhookRow> {
  const ofAccount = accountId !== undefined && { account_id: accountId };
  return database<WebhookRow>('webhooks').where({ ...idIs(webhookId), ...ofAccount });
}

/** Writes a change of a webhook to the audit log. */
export async function audit(
  transaction: Knex.Transaction,
  { actor, action }: Pick<AuditEntry, 'actor' | 'action'>,
  webhookId: string,
  change: Pick<AuditEntry, 'before' | 'after'> = {},
): Promise<void> {
  await writeAudit(transaction, { actor, action, subject: `webhook:${webhookId}`, ...change });
}

function audited({ account_id: accountId, url, types, status }: WebhookRow): object {
  return { accountId, url, types, status };
}

function columnsOf({ types, secrets, ...row }: WebhookRow): object {
  return { ...row, types: types === null ? null : JSON.stringify(types), secrets: JSON.stringify(secrets) };
}

function toWebhook({ id, account_id: accountId, url, types, status, created_at: createdAt }: WebhookRow): Webhook {
  return { id, accountId, url, types, status, createdAt };
}
