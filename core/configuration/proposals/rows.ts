import { formatUsd, parseUsd } from '../../base/money';
import { normaliseModelName } from '../../catalog/model-names';
import { METERS, type TokenMeter } from '../../catalog/usage';
import type { Configuration } from '../configuration';
import { findVendorPrice } from '../price-lists';
import { decimalText } from '../prices';
import type { ModelSettings } from '../schema';
import { findListed, type ListedModel, type PublicList } from './list';

/**
 * Why a row cannot be accepted; the first that applies. `vendor`: the shipped catalogue has the price. `hand`: an operator wrote it.
 * `number`: the list's value is no price. `unpriced`: the list has the model without its prices of input and output. `vanished`: the list
 * does not name the meter. `zero`: the new price is 0. `factor`: it is above twice or below half of the old one. `changed`: when the
 * row was to be applied, the old price was another one, or the configuration did not take the new one.
 */
export const GUARDS = ['vendor', 'hand', 'number', 'unpriced', 'vanished', 'zero', 'factor', 'changed'] as const;
type Guard = (typeof GUARDS)[number];

export const ROW_STATES = ['proposed', 'stopped', 'accepted', 'refused'] as const;

/** One price that a list has otherwise than the configuration. Amounts are USD per million tokens with 8 decimals. */
export interface ProposalRow {
  readonly id: string;
  readonly upstream: string;
  readonly model: string;
  readonly meter: TokenMeter;
  readonly old: string;
  /** The list's price; null if it has none. */
  readonly new: string | null;
  readonly source: string;
  /** The day on which the list was read. */
  readonly date: string;
  readonly state: (typeof ROW_STATES)[number];
  /** Why the row is stopped; null if it is not. */
  readonly guard: Guard | null;
}

/** A model whose price came from the list, and which the list no longer has. */
export interface GoneModel {
  readonly upstream: string;
  readonly model: string;
}

type Priced = Pick<Configuration, 'gateway'>;

interface Proposed {
  readonly rows: readonly ProposalRow[];
  readonly gone: readonly GoneModel[];
}

/** Compares the prices of a configuration with a public list that was read on the day `date`. */
export function propose(configuration: Priced, list: PublicList, date: string): Proposed {
  const rows: Omit<ProposalRow, 'id'>[] = [];
  const gone: GoneModel[] = [];
  for (const { upstream, model, settings } of modelsOf(configuration)) {
    const listed = findListed(list, { upstream, from: settings.from, model });
    const stop = stoppedBy(configuration, upstream, model, settings);
    for (const each of differences(settings.price, listed, stop))
      rows.push({ upstream, model, source: list.format, date, ...each });
    if (settings.price.source === list.format && !list.models.has(normaliseModelName(model)))
      gone.push({ upstream, model });
  }
  return { rows: rows.map((row, at) => ({ id: String(at + 1), ...row })), gone };
}

function modelsOf({ gateway }: Priced) {
  return byName(gateway.serviceEndpoints).flatMap(([upstream, { models }]) =>
    byName(models).map(([model, settings]) => ({ upstream, model, settings })),
  );
}

function byName<T>(of: Readonly<Record<string, T>>): [string, T][] {
  return Object.entries(of).sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Returns why no list may change the price of a model; undefined if one may. */
function stoppedBy({ gateway }: Priced, upstream: string, model: string, { price }: ModelSettings): Guard | undefined {
  if (findVendorPrice(gateway, upstream, model) !== undefined) return 'vendor';
  return price.source === undefined ? 'hand' : undefined;
}

type Difference = Pick<ProposalRow, 'meter' | 'old' | 'new' | 'state' | 'guard'>;

function differences(
  price: ModelSettings['price'],
  listed: ListedModel | undefined,
  stop: Guard | undefined,
): readonly Difference[] {
  if (listed === undefined) return [];
  return (Object.keys(METERS) as TokenMeter[]).flatMap((meter): Difference[] => {
    const oldE8 = rateOf(price, meter);
    const newE8 = listed.prices.get(meter);
    if (oldE8 === undefined || oldE8 === newE8) return [];
    const guard = stop ?? guardOf(oldE8, meter, listed) ?? null;
    const shown = newE8 === undefined ? null : formatUsd(newE8);
    return [{ meter, old: formatUsd(oldE8), new: shown, state: guard === null ? 'proposed' : 'stopped', guard }];
  });
}

function guardOf(oldE8: bigint, meter: TokenMeter, { prices }: ListedModel): Guard | undefined {
  const newE8 = prices.get(meter);
  if (prices.has(meter) && newE8 === undefined) return 'number';
  if (!prices.has('input') && !prices.has('output')) return 'unpriced';
  if (newE8 === undefined) return 'vanished';
  if (newE8 === 0n) return 'zero';
  return newE8 > 2n * oldE8 || 2n * newE8 < oldE8 ? 'factor' : undefined;
}

/** Returns the price of a meter in E8 as the configuration has it; undefined if it has none of its own. */
function rateOf(price: ModelSettings['price'], meter: TokenMeter): bigint | undefined {
  const written = price[meter];
  return written === undefined ? undefined : parseUsd(decimalText(written));
}

/** Returns whether the configuration still has the old price that was reviewed. */
export function hasOldPrice({ gateway }: Priced, { upstream, model, meter, old }: ProposalRow): boolean {
  const price = gateway.serviceEndpoints[upstream]?.models[model]?.price;
  return price !== undefined && rateOf(price, meter) === parseUsd(old);
}

/** Returns a model's settings of its price with the new prices of these rows; undefined if no row is for the model. */
export function withNewPrices(
  { price }: Pick<ModelSettings, 'price'>,
  rows: readonly ProposalRow[],
): ModelSettings['price'] | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  const changed = rows.flatMap((row) => (row.new === null ? [] : [[row.meter, amountOf(row.new)] as const]));
  return { ...price, ...Object.fromEntries(changed), source: first.source, date: first.date };
}

/** Returns an amount as an operator would write it: a number without needless zeros, or text if a number would lose digits. */
function amountOf(usd: string): number | string {
  const text = usd.replace(/\.?0+$/, '');
  return decimalText(Number(text)) === text ? Number(text) : text;
}
