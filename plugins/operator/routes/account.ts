import type { Account } from '../../../core/accounts/accounts';
import { showUsd } from '../../../core/api/fields';
import { object, oneOf, orNull, shape } from '../../../core/http/shape';
import { MARKUP } from './markup';

/** Shows an account to operators. */
export function showAccount({ id, name, status, createdAt, excessE8, markup, money }: Account): object {
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
  };
}

/** The result of `showAccount` in the OpenAPI document. */
export const ACCOUNT = object({
  id: shape.uuid,
  name: shape.text,
  status: oneOf('active', 'frozen'),
  createdAt: shape.time,
  balanceUsd: orNull(shape.usd),
  heldUsd: orNull(shape.usd),
  availableUsd: orNull(shape.usd),
  excessUsd: shape.usd,
  markup: MARKUP,
});
