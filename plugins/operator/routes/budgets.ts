import {
  type Budget,
  createBudget,
  deleteBudget,
  findBudget,
  listBudgets,
  updateBudget,
} from '../../../core/accounts/budgets';
import { AMOUNT, ID, readAmount, showUsd } from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { invalidParam } from '../../../core/base/errors';
import { formatUsd } from '../../../core/base/money';
import { PLAIN_ID } from '../../../core/calls/session-ids';
import { TAG_NAME } from '../../../core/calls/tags';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { PAGE_READERS, pageOf, wordReader } from '../../../core/http/query';
import { listOf, object, oneOf, orNull, pageShape, shape } from '../../../core/http/shape';
import { LIMIT_WINDOWS, SCOPE_KINDS } from '../../../core/ledger/scopes';
import { restrictionOf } from './users-of-console';

function showBudget(budget: Budget): object {
  const { id, accountId, scope, scopeId = null, name, tag = null, value = null } = budget;
  const { window, limitE8, money, resetsAt, thresholds } = budget;
  return {
    ...{ id, accountId, scope, scopeId, name, tag, value, window },
    limitUsd: formatUsd(limitE8),
    spentUsd: showUsd(money?.spentE8),
    heldUsd: showUsd(money?.heldE8),
    resetsAt: resetsAt?.toISOString() ?? null,
    thresholds,
  };
}

/** The result of `showBudget` in the OpenAPI document. */
const BUDGET = object({
  id: shape.uuid,
  accountId: shape.uuid,
  scope: oneOf(...SCOPE_KINDS),
  scopeId: { ...orNull(shape.uuid), description: 'The id of the team, member or key; null for others.' },
  name: {
    ...shape.text,
    description: 'The name of the account, team or key, the e-mail address of the member, or the tag: `customer=4711`.',
  },
  tag: { ...orNull(shape.text), description: 'The name of the tag; null for other scopes.' },
  value: { ...orNull(shape.text), description: 'The value of the tag; null if each value has the limit.' },
  window: oneOf(...LIMIT_WINDOWS),
  limitUsd: shape.usd,
  spentUsd: {
    ...orNull(shape.usd),
    description: 'Spent in the current window; null while the ledger is unreachable, and for a tag without a value.',
  },
  heldUsd: { ...orNull(shape.usd), description: 'Held for open calls; null like `spentUsd`.' },
  resetsAt: { ...orNull(shape.time), description: 'When the window ends; null for `total`.' },
  thresholds: listOf(shape.integer),
});

/** Percentages of the limit; `checkThresholds` checks that they ascend. */
const THRESHOLDS = {
  type: 'array',
  maxItems: 10,
  uniqueItems: true,
  items: { type: 'integer', minimum: 1, maximum: 1_000 },
  description: 'The percentages of the limit whose reaching is reported, ascending.',
} as const;

/** The name of a tag, and its value, as calls send them. */
const TAG = {
  type: ['string', 'null'],
  maxLength: 32,
  pattern: TAG_NAME,
  'x-expected': 'a name such as customer: lower-case letters, digits and underscores, first a letter, at most 32',
} as const;
const VALUE = {
  type: ['string', 'null'],
  maxLength: 64,
  pattern: PLAIN_ID.source,
  'x-expected': 'a value such as 4711: letters, digits, dots, colons, underscores and hyphens, at most 64',
} as const;

const NEW_BUDGET = {
  type: 'object',
  additionalProperties: false,
  required: ['scope', 'window', 'limitUsd'],
  properties: {
    scope: { enum: SCOPE_KINDS },
    scopeId: { ...ID, type: ['string', 'null'] },
    tag: TAG,
    value: VALUE,
    window: { enum: LIMIT_WINDOWS },
    limitUsd: AMOUNT,
    thresholds: THRESHOLDS,
  },
  example: { scope: 'account', window: 'month', limitUsd: '100.00', thresholds: [50, 80, 100] },
} as const;

const BUDGET_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { limitUsd: AMOUNT, thresholds: THRESHOLDS },
  example: { limitUsd: '200.00' },
} as const;

/** @throws INVALID_FIELD if the thresholds do not ascend */
function checkThresholds(thresholds: readonly number[] = []): void {
  const wrong = thresholds.findIndex((each, index) => each <= (thresholds[index - 1] ?? 0));
  if (wrong !== -1) throw invalidParam(`thresholds[${wrong}]`, 'expected more than the one before it');
}

const SHOWN = { 200: { description: 'The budget.', schema: BUDGET } };

export function budgetRoutes(gateway: PluginGateway): readonly Route[] {
  return [
    adminRoute('POST /admin/v1/accounts/{accountId}/budgets', {
      role: 'write',
      summary:
        'Limit what an account, team, member, key or tag spends in a window; answers when every node applies it.',
      body: NEW_BUDGET,
      answers: { 201: SHOWN[200] },
      errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ body: { limitUsd, ...budget }, params, operator }) => {
        checkThresholds(budget.thresholds);
        const wanted = { ...budget, limitE8: readAmount('limitUsd', limitUsd) };
        return showBudget(await createBudget(gateway, params.accountId, wanted, operator.actor));
      },
    }),
    adminRoute('GET /admin/v1/accounts/{accountId}/budgets', {
      role: 'read',
      summary: 'List the budgets of an account and of its teams, members, keys and tags, newest first.',
      query: { scope: wordReader(SCOPE_KINDS), ...PAGE_READERS },
      answers: { 200: { description: 'A page of budgets.', schema: pageShape(BUDGET) } },
      handle: async ({ params, filters: { scope, ...page }, session }) => {
        const only = { scope, memberId: restrictionOf(session) };
        const { items, nextCursor } = await listBudgets(gateway, params.accountId, pageOf(page), only);
        return { items: items.map(showBudget), nextCursor };
      },
    }),
    adminRoute('GET /admin/v1/budgets/{budgetId}', {
      role: 'read',
      summary: 'Show a budget with what is spent and held.',
      answers: SHOWN,
      handle: async ({ params, session }) =>
        showBudget(await findBudget(gateway, params.budgetId, restrictionOf(session))),
    }),
    adminRoute('PATCH /admin/v1/budgets/{budgetId}', {
      role: 'write',
      summary: 'Change the limit or the thresholds of a budget; answers when every node applies it.',
      body: BUDGET_CHANGES,
      answers: SHOWN,
      errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ body: { limitUsd, thresholds }, params, operator }) => {
        checkThresholds(thresholds);
        const limitE8 = limitUsd === undefined ? undefined : readAmount('limitUsd', limitUsd);
        return showBudget(await updateBudget(gateway, params.budgetId, { limitE8, thresholds }, operator.actor));
      },
    }),
    adminRoute('DELETE /admin/v1/budgets/{budgetId}', {
      role: 'write',
      summary: 'Delete a budget; answers when no node applies it any more.',
      answers: SHOWN,
      errors: ['LEDGER_UNAVAILABLE'],
      handle: async ({ params, operator }) => showBudget(await deleteBudget(gateway, params.budgetId, operator.actor)),
    }),
  ];
}
