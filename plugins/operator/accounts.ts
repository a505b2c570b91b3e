import {
  type Account,
  createAccount,
  listAccounts,
  readAccount,
  type Stores,
  setAccountStatus,
} from '../../core/accounts';
import { showUsd, TEXT } from '../../core/fields';
import { jsonBody, sendJson } from '../../core/http';
import type { AccountStatus } from '../../core/ledger/ledger';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery } from '../../core/query';
import type { Settings } from '../../core/settings';
import { object, oneOf, orNull, pageOf as pageShape, shape } from '../../core/shape';
import { ADMIN, NOTHING } from './fields';

const NEW_ACCOUNT = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { name: TEXT },
  example: { name: 'acme' },
} as const;

export function accountRoutes(stores: Stores): Route[] {
  const readNewAccount = jsonBody<Settings<typeof NEW_ACCOUNT>>(NEW_ACCOUNT);
  const readNothing = jsonBody<Settings<typeof NOTHING>>(NOTHING);

  const statusRoute = (verb: 'freeze' | 'unfreeze', status: AccountStatus, summary: string): Route => ({
    listener: 'admin',
    method: 'POST',
    path: `/admin/v1/accounts/{accountId}/${verb}`,
    summary,
    body: NOTHING,
    answers: { 200: { description: 'The account.', schema: ACCOUNT } },
    handle: async ({ params }, request, response) => {
      await readNothing(request);
      sendJson(response, 200, toJson(await setAccountStatus(stores, params['accountId'] ?? '', status, ADMIN)));
    },
  });

  return [
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/accounts',
      summary: 'Create an account.',
      body: NEW_ACCOUNT,
      answers: { 201: { description: 'The account.', schema: ACCOUNT } },
      handle: async (_visit, request, response) => {
        const { name } = await readNewAccount(request);
        sendJson(response, 201, toJson(await createAccount(stores, name, ADMIN)));
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/accounts',
      summary: 'List accounts, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of accounts.', schema: pageShape(ACCOUNT) } },
      handle: async ({ query }, _request, response) => {
        const { items, nextCursor } = await listAccounts(stores, pageOf(readQuery(query, PAGE_READERS)));
        sendJson(response, 200, { items: items.map(toJson), nextCursor });
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/accounts/{accountId}',
      summary: 'Show an account with its balance.',
      answers: { 200: { description: 'The account.', schema: ACCOUNT } },
      handle: async ({ params }, _request, response) => {
        sendJson(response, 200, toJson(await readAccount(stores, params['accountId'] ?? '')));
      },
    },
    statusRoute('freeze', 'frozen', 'Refuse every further call of an account.'),
    statusRoute('unfreeze', 'active', 'Take calls of a frozen account again.'),
  ];
}

function toJson({ id, name, status, createdAt, money }: Account): object {
  return {
    id,
    name,
    status,
    createdAt: createdAt.toISOString(),
    balanceUsd: showUsd(money?.postedE8),
    heldUsd: showUsd(money?.heldE8),
    availableUsd: showUsd(money?.availableE8),
  };
}

const ACCOUNT = object({
  id: shape.uuid,
  name: shape.text,
  status: oneOf('active', 'frozen'),
  createdAt: shape.time,
  balanceUsd: orNull(shape.usd),
  heldUsd: orNull(shape.usd),
  availableUsd: orNull(shape.usd),
});
