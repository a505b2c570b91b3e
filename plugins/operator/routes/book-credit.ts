import type { Stores } from '../../../core/accounts/accounts';
import { addCredit } from '../../../core/accounts/credits';
import { AMOUNT, readAmount, TEXT } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object, orNull, shape } from '../../../core/http/shape';
import { formatUsd } from '../../../core/money';
import type { Settings } from '../../../core/settings';

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

export function bookCreditRoute(stores: Stores, noun: keyof typeof BOOKINGS): Route {
  const { sign, summary } = BOOKINGS[noun];
  const readNewCredit = jsonBody<Settings<typeof NEW_CREDIT>>(NEW_CREDIT);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: `/admin/v1/accounts/{accountId}/${noun}`,
    summary,
    body: NEW_CREDIT,
    answers: {
      200: { description: 'It was already booked with this idempotency key.', schema: CREDIT },
      201: { description: 'It is booked.', schema: CREDIT },
    },
    errors: ['CONFLICT', 'INSUFFICIENT_BALANCE', 'LEDGER_UNAVAILABLE'],
    handle: async ({ params, operator }, request, response) => {
      const { amountUsd, idempotencyKey, note } = await readNewCredit(request);
      const amountE8 = readAmount('amountUsd', amountUsd);
      if (amountE8 === 0n)
        throw fail('INVALID_FIELD', { param: 'amountUsd', message: 'amountUsd: expected more than 0' });
      const accountId = params['accountId'] ?? '';
      const credit = await addCredit(
        stores,
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
  };
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
