import { TEXT } from '../../../core/api/fields';
import type { Catalog } from '../../../core/catalog/catalog';
import { fail } from '../../../core/errors';
import { orNull, shape } from '../../../core/http/shape';

/** The markup: what a customer pays instead of the upstream's price; see docs/money.md. */

export const NEW_MARKUP = TEXT;
export const MARKUP_CHANGE = { ...TEXT, type: ['string', 'null'] } as const;

export const MARKUP = {
  ...orNull(shape.text),
  description: 'A factor such as `1.25`, or the name of a list under `customerPrices`.',
};

/** @throws INVALID_FIELD if the markup is neither a factor nor a configured price list */
export function checkMarkup({ customerPrices }: Catalog, markup: string | null | undefined): void {
  if (typeof markup !== 'string') return;
  try {
    customerPrices.check(markup);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw fail('INVALID_FIELD', { param: 'markup', message: `markup: ${error.message}` });
  }
}
