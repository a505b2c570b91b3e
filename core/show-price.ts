import { formatUsd } from './money';
import { dearestRateE8, type Price } from './price';
import { object, orNull, shape } from './shape';

/** What a million tokens cost, as bodies say it. */

function showRates(price: Omit<Price, 'above'>) {
  return {
    input: formatUsd(price.inputE8),
    output: formatUsd(price.outputE8),
    cacheWrite: formatUsd(price.cacheWriteE8),
    cacheWrite1h: formatUsd(price.cacheWrite1hE8),
    cacheRead: formatUsd(price.cacheReadE8),
  };
}

export function showPrice(price: Price) {
  return {
    ...showRates(price),
    above: price.above === undefined ? null : { tokens: price.above.tokens, ...showRates(price.above) },
  };
}

/** The dearest of several prices, each rate by itself: no call costs more. */
export function showDearestRates(prices: readonly Price[]) {
  const dearest = (kind: keyof Omit<Price, 'above'>) => dearestRateE8(prices, kind);
  return showRates({
    inputE8: dearest('inputE8'),
    outputE8: dearest('outputE8'),
    cacheWriteE8: dearest('cacheWriteE8'),
    cacheWrite1hE8: dearest('cacheWrite1hE8'),
    cacheReadE8: dearest('cacheReadE8'),
  });
}

const RATES = {
  input: shape.usd,
  output: shape.usd,
  cacheWrite: shape.usd,
  cacheWrite1h: shape.usd,
  cacheRead: shape.usd,
};

/** What `showPrice` answers, as the OpenAPI document says it. */
export const PRICE_PER_MILLION = object({ ...RATES, above: orNull(object({ tokens: shape.integer, ...RATES })) });
