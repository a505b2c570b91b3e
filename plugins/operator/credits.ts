import type { Stores } from '../../core/accounts';
import { addCredit } from '../../core/credits';
import { fail } from '../../core/errors';
import { AMOUNT, readAmount, TEXT } from '../../core/fields';
import { jsonBody, sendJson } from '../../core/http';
import { formatUsd } from '../../core/money';
import type { Route } from '../../core/plugin';
import type { Settings } from '../../core/settings';
import { object, orNull, shape } from '../../core/shape';
import { ADMIN } from './fields';

const NEW_CREDIT = {
  type: 'object',
  additionalProperties: false,
  required: ['amountUsd', 'idempotencyKey'],
  properties: { amountUsd: AMOUNT, idempotencyKey: TEXT, note: { ...TEXT, maxLength: 2_000 } },
  example: { amountUsd: '25.00', idempotencyKey: 'invoice-17', note: 'paid' },
} as const;

export function creditRoutes(stores: Stores): Route[] {
  const readNewCredit = jsonBody<Settings<typeof NEW_CREDIT>>(NEW_CREDIT);

  /** A debit is a credit of the opposite sign; both are asked for with an amount above 0. */
  const route = (noun: 'credits' | 'debits', sign: 1n | -1n, summary: string): Route => ({
    listener: 'admin',
    method: 'POST',
    path: `/admin/v1/accounts/{accountId}/${noun}`,
    summary,
    body: NEW_CREDIT,
    answers: {
      200: { description: 'It was booked before with this idempotency key.', schema: CREDIT },
      201: { description: 'It is booked.', schema: CREDIT },
    },
    errors: ['CONFLICT', 'INSUFFICIENT_BALANCE', 'LEDGER_UNAVAILABLE'],
    handle: async ({ params }, request, response) => {
      const { amountUsd, idempotencyKey, note } = await readNewCredit(request);
      const amountE8 = readAmount('amountUsd', amountUsd);
      if (amountE8 === 0n)
        throw fail('INVALID_FIELD', { param: 'amountUsd', message: 'amountUsd: expected more than 0' });
      const accountId = params['accountId'] ?? '';
      const credit = await addCredit(stores, { accountId, amountE8: sign * amountE8, idempotencyKey, note }, ADMIN);
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

  return [
    route('credits', 1n, 'Add money to an account, once per idempotency key.'),
    route('debits', -1n, 'Take money off an account, at most what is available, once per idempotency key.'),
  ];
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
