import {
  type Account,
  createAccount,
  listAccounts,
  readAccount,
  setAccountStatus,
} from '../../../core/accounts/accounts';
import { addCredit } from '../../../core/accounts/credits';
import { updateAccount } from '../../../core/accounts/keys';
import {
  AMOUNT,
  REQUIRE_CHANGE,
  readAmount,
  readRequire,
  SHOWN_REQUIRE,
  showUsd,
  TEXT,
} from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { invalidParam } from '../../../core/base/errors';
import { formatUsd } from '../../../core/base/money';
import type { Catalog } from '../../../core/catalog/catalog';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readFilter, readText } from '../../../core/http/query';
import { object, oneOf, orNull, pageShape, shape } from '../../../core/http/shape';

/** Shows an account to operators. */
function showAccount(account: Account): object {
  const { id, name, status, createdAt, excessE8, markup, balanceLowE8, require, money } = account;
  return {
    id,
    name,
    status,
    createdAt: createdAt.toISOString(),
    balanceUsd: showUsd(money?.postedE8),
    heldUsd: showUsd(money?.heldE8),
    availableUsd: showUsd(money?.availableE8),
    excessUsd: showUsd(excessE8),
    markup: markup ?? null,
    balanceLowUsd: showUsd(balanceLowE8),
    require: require ?? null,
  };
}

/** The markup: what a customer pays instead of the upstream's price; see docs/money.md. */
export const NEW_MARKUP = TEXT;
export const MARKUP_CHANGE = { ...TEXT, type: ['string', 'null'] } as const;

export const MARKUP = {
  ...orNull(shape.text),
  description: 'A factor such as `1.25`, or the name of a list under `customerPrices`.',
};

/** The result of `showAccount` in the OpenAPI document. */
const ACCOUNT = object({
  id: shape.uuid,
  name: shape.text,
  status: oneOf('active', 'frozen'),
  createdAt: shape.time,
  balanceUsd: orNull(shape.usd),
  heldUsd: orNull(shape.usd),
  availableUsd: orNull(shape.usd),
  excessUsd: shape.usd,
  markup: MARKUP,
  balanceLowUsd: {
    ...orNull(shape.usd),
    description: 'The account gets an event `balance.low` each time its balance falls below this; null for none.',
  },
  require: SHOWN_REQUIRE,
});

/** @throws INVALID_FIELD if the markup is neither a factor nor a configured price list */
export function checkMarkup({ customerPrices }: Catalog, markup: string | null | undefined): void {
  if (typeof markup === 'string') readFilter('markup', markup, (name) => customerPrices.check(name));
}

const NEW_ACCOUNT = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { name: TEXT, markup: NEW_MARKUP },
  example: { name: 'acme' },
} as const;

const ACCOUNT_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    name: TEXT,
    markup: MARKUP_CHANGE,
    balanceLowUsd: { ...AMOUNT, type: ['string', 'null'] },
    require: REQUIRE_CHANGE,
  },
  example: { markup: '1.25', require: 'region=eu; trains=no' },
} as const;

/** The endpoints that set an account's status. They differ only in that status. */
const CHANGES = {
  freeze: { status: 'frozen', summary: 'Freeze an account: refuse all its further calls.' },
  unfreeze: { status: 'active', summary: 'Unfreeze an account: accept its calls again.' },
} as const;

const SHOWN = { 200: { description: 'The account.', schema: ACCOUNT } };

export function accountRoutes(gateway: PluginGateway): readonly Route[] {
  return [
    adminRoute('POST /admin/v1/accounts', {
      role: 'write',
      summary: 'Create an account.',
      body: NEW_ACCOUNT,
      answers: { 201: SHOWN[200] },
      handle: async ({ body, operator }) => {
        checkMarkup(gateway.catalog, body.markup);
        return showAccount(await createAccount(gateway, body, operator.actor));
      },
    }),
    adminRoute('GET /admin/v1/accounts', {
      role: 'read',
      summary:
        'List accounts, newest first; `search` is a part of a name, an id, an e-mail address or the shown end of a key.',
      query: { search: readText, ...PAGE_READERS },
      answers: { 200: { description: 'A page of accounts.', schema: pageShape(ACCOUNT) } },
      handle: async ({ filters }) => {
        const { items, nextCursor } = await listAccounts(gateway, pageOf(filters), filters.search);
        return { items: items.map(showAccount), nextCursor };
      },
    }),
    adminRoute('GET /admin/v1/accounts/{accountId}', {
      role: 'read',
      summary: 'Show an account with its balance.',
      answers: SHOWN,
      handle: async ({ params }) => showAccount(await readAccount(gateway, params.accountId)),
    }),
    adminRoute('PATCH /admin/v1/accounts/{accountId}', {
      role: 'write',
      summary:
        'Rename an account, or change the markup of its keys, their demands, or the balance that counts as low; null removes.',
      body: ACCOUNT_CHANGES,
      answers: SHOWN,
      errors: ['LEDGER_UNAVAILABLE'],
      handle: async ({ body: { balanceLowUsd, ...changes }, params, operator }) => {
        checkMarkup(gateway.catalog, changes.markup);
        readRequire(changes.require);
        const balanceLowE8 =
          typeof balanceLowUsd === 'string' ? readAmount('balanceLowUsd', balanceLowUsd) : balanceLowUsd;
        return showAccount(
          await updateAccount(gateway, params.accountId, { ...changes, balanceLowE8 }, operator.actor),
        );
      },
    }),
    ...(['freeze', 'unfreeze'] as const).map((verb) =>
      adminRoute(`POST /admin/v1/accounts/{accountId}/${verb}`, {
        role: 'write',
        summary: CHANGES[verb].summary,
        answers: SHOWN,
        handle: async ({ params, operator }) =>
          showAccount(await setAccountStatus(gateway, params.accountId, CHANGES[verb].status, operator.actor)),
      }),
    ),
    bookCreditRoute(gateway, 'credits'),
    bookCreditRoute(gateway, 'debits'),
  ];
}

const NEW_CREDIT = {
  type: 'object',
  additionalProperties: false,
  required: ['amountUsd', 'idempotencyKey'],
  properties: { amountUsd: AMOUNT, idempotencyKey: TEXT, note: { ...TEXT, maxLength: 2_000 } },
  example: { amountUsd: '25.00', idempotencyKey: 'invoice-17', note: 'paid' },
} as const;

/** The endpoints that book money: a debit is a credit with the opposite sign. Requests for either have an amount above 0. */
const BOOKINGS = {
  credits: { sign: 1n, summary: 'Add money to an account, once per idempotency key.' },
  debits: {
    sign: -1n,
    summary: 'Debit money from an account, at most what is available, once per idempotency key.',
  },
} as const;

function bookCreditRoute(gateway: PluginGateway, noun: keyof typeof BOOKINGS): Route {
  const { sign, summary } = BOOKINGS[noun];
  return adminRoute(`POST /admin/v1/accounts/{accountId}/${noun}`, {
    role: 'write',
    summary,
    body: NEW_CREDIT,
    answers: {
      200: { description: 'It was already booked with this idempotency key.', schema: CREDIT },
      201: { description: 'It is booked.', schema: CREDIT },
    },
    errors: ['CONFLICT', 'INSUFFICIENT_BALANCE', 'LEDGER_UNAVAILABLE'],
    handle: async ({ body, params: { accountId }, operator }, _request, response) => {
      const { amountUsd, idempotencyKey, note } = body;
      const amountE8 = readAmount('amountUsd', amountUsd);
      if (amountE8 === 0n) throw invalidParam('amountUsd', 'expected more than 0');
      const credit = await addCredit(
        gateway,
        { accountId, amountE8: sign * amountE8, idempotencyKey, note },
        operator.actor,
      );
      sendJson(response, credit.repeated ? 200 : 201, {
        id: credit.id,
        accountId,
        amountUsd: formatUsd(amountE8),
        idempotencyKey,
        note: credit.note ?? null,
        createdAt: credit.createdAt.toISOString(),
        balanceUsd: formatUsd(credit.postedE8),
      });
    },
  });
}

const CREDIT = object({
  id: shape.uuid,
  accountId: shape.uuid,
  amountUsd: shape.usd,
  idempotencyKey: shape.text,
  note: orNull(shape.text),
  createdAt: shape.time,
  balanceUsd: shape.usd,
});
