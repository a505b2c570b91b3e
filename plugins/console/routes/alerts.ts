import { readAccountRow } from '../../../core/accounts/accounts';
import { updateAccount } from '../../../core/accounts/keys';
import { FEED, FEED_READERS, feedRequestOf } from '../../../core/api/event-fields';
import { AMOUNT, readAmount, showUsd } from '../../../core/api/fields';
import { sessionRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { listAccountEvents } from '../../../core/events/feed';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { object, orNull, shape } from '../../../core/http/shape';
import { MANAGERS, OVERSEERS } from '../../../core/sign-in/member-roles';

const ACCOUNT = {
  200: {
    description: 'What the users of the account may set.',
    schema: object({ id: shape.uuid, name: shape.text, balanceLowUsd: orNull(shape.usd) }),
  },
} as const;

const CHANGES = {
  type: 'object',
  additionalProperties: false,
  required: ['balanceLowUsd'],
  properties: { balanceLowUsd: { ...AMOUNT, type: ['string', 'null'] } },
} as const;

/** Lists the routes of an account's events and of the balance that counts as low. */
export function alertRoutes(gateway: PluginGateway): readonly Route[] {
  const { database } = gateway;
  const showAccount = async (accountId: string) => {
    const { id, name, balance_low_e8: balanceLowE8 } = await readAccountRow(database, accountId);
    return { id, name, balanceLowUsd: showUsd(balanceLowE8 ?? undefined) };
  };
  return [
    sessionRoute('GET /console/api/events', {
      roles: OVERSEERS,
      summary: "The account's events, oldest first.",
      query: FEED_READERS,
      answers: FEED,
      handle: ({ accountId, filters }) => listAccountEvents(database, accountId, feedRequestOf(filters)),
    }),
    sessionRoute('GET /console/api/account', {
      roles: OVERSEERS,
      summary: 'The account with the balance that counts as low.',
      answers: ACCOUNT,
      handle: ({ accountId }) => showAccount(accountId),
    }),
    sessionRoute('PATCH /console/api/account', {
      roles: MANAGERS,
      summary: 'Changes the balance that counts as low; null removes it.',
      body: CHANGES,
      answers: ACCOUNT,
      errors: ['LEDGER_UNAVAILABLE'],
      handle: async ({ accountId, session, body: { balanceLowUsd } }) => {
        const balanceLowE8 = balanceLowUsd === null ? null : readAmount('balanceLowUsd', balanceLowUsd);
        await updateAccount(gateway, accountId, { balanceLowE8 }, `user:${session.user.id}`);
        return showAccount(accountId);
      },
    }),
  ];
}
