import { type CustomerPriceList, parseFactor } from '../catalog/customer-prices';
import { normaliseModelName } from '../catalog/model-names';
import type { Price } from '../catalog/price';
import { decimalText, readPrice } from './prices';
import type { LocatedProblem } from './problems';
import type { GatewaySettings } from './schema';

const NOTHING_MORE = { tiers: [], speeds: [], geos: [] };

/** Reads the prices that customers pay instead of the upstreams' prices, by the list's name. */
export function readCustomerPrices(
  { customerPrices = {}, serviceEndpoints }: GatewaySettings,
  problems: LocatedProblem[],
): ReadonlyMap<string, CustomerPriceList> {
  const known = new Set(
    Object.values(serviceEndpoints).flatMap(({ models }) =>
      Object.entries(models).flatMap(([name, { aliases }]) => [name, ...aliases].map(normaliseModelName)),
    ),
  );
  const lists = Object.entries(customerPrices).map(([name, { factor, models }]) => {
    const path = ['customerPrices', name];
    const prices = Object.entries(models).map(([model, { price }]): [string, Price] => {
      const at = [...path, 'models', model];
      const normalised = normaliseModelName(model);
      if (!known.has(normalised)) problems.push({ path: at, message: 'no upstream has a model with this name' });
      return [normalised, readPrice(at, { price, mayAnswerWith: NOTHING_MORE }, problems)];
    });
    return [name, { factorE8: readFactor([...path, 'factor'], factor, problems), models: new Map(prices) }] as const;
  });
  return new Map(lists);
}

function readFactor(path: readonly string[], value: number | string, problems: LocatedProblem[]): bigint {
  try {
    return parseFactor(decimalText(value));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    problems.push({ path, message: error.message });
    return 0n;
  }
}
