import { showPrice } from '../core/api/show-price';
import type { ModelEntry, Upstream } from '../core/catalog/catalog';
import type { Configuration } from '../core/configuration/configuration';
import { findVendorPrice, type PriceList, type PublishedModel } from '../core/configuration/price-lists';
import { readPrice } from '../core/configuration/prices';
import type { Verb } from './command';
import { soundConfiguration } from './config';
import { Failure } from './failure';
import { type Columns, showList } from './output';

/** A difference between the configuration and the vendor's published price. */
interface PriceDifference {
  readonly upstream: string;
  readonly model: string;
  /** The name of the compared value, such as `price.input`. */
  readonly what: string;
  /** The configured value; null if it is not set. */
  readonly configured: string | null;
  readonly published: string | null;
  /** The day on which the vendor's page showed the published value. */
  readonly date: string;
  readonly source: string;
}

const DIFFERENCE_COLUMNS: Columns<PriceDifference> = {
  MODEL: ({ upstream, model }) => `${upstream}/${model}`,
  WHAT: ({ what }) => what,
  CONFIGURED: ({ configured }) => configured,
  PUBLISHED: ({ published }) => published,
  DATE: ({ date }) => date,
  SOURCE: ({ source }) => source,
};

/**
 * A configured model with the vendor's published price. `from` may name the published model. Without `from`, the published model has the
 * configured model's name, and the vendor itself must serve it.
 */
interface PublishedEntry {
  readonly upstream: Upstream;
  readonly model: ModelEntry;
  readonly list: PriceList;
  readonly published: PublishedModel;
}

function publishedEntries({ catalog, gateway }: Configuration): readonly PublishedEntry[] {
  return catalog.upstreams.flatMap((upstream) =>
    upstream.models.flatMap((model) => {
      const found = findVendorPrice(gateway, upstream.name, model.name);
      return found === undefined ? [] : [{ upstream, model, list: found.list, published: found.model }];
    }),
  );
}

/** Returns the values in which the configuration differs from the vendor's published prices. */
function differencesOf({ upstream, model, list, published }: PublishedEntry): readonly PriceDifference[] {
  const own = factsOf(model, model.price);
  const price = readPrice([], { ...published, mayAnswerWith: { tiers: [], speeds: [], geos: [] } }, []);
  const theirs = factsOf(published, price);
  const all = [...new Set([...own.keys(), ...theirs.keys()])];
  return all
    .filter((what) => own.get(what) !== theirs.get(what))
    .map((what) => ({
      upstream: upstream.name,
      model: model.name,
      what,
      configured: own.get(what) ?? null,
      published: theirs.get(what) ?? null,
      date: published.date,
      source: list.source,
    }));
}

function factsOf({ context, maxOutput }: { context: number; maxOutput: number }, price: ModelEntry['price']) {
  const { variants, ...plain } = showPrice(price);
  return new Map([
    ...flat({ context, maxOutput }, []),
    ...flat(plain, ['price']),
    ...Object.entries(variants).map(([name, card]) => [`price (${name})`, inWords(card)] as const),
  ]);
}

/** Returns all prices of a price variant (a tier, speed or region) as one text. */
function inWords(card: unknown): string {
  return flat(card, [])
    .map(([what, amount]) => `${what} ${amount}`)
    .join(', ');
}

function flat(value: unknown, path: readonly string[]): [string, string][] {
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object') return [[path.join('.'), String(value)]];
  return Object.entries(value).flatMap(([name, each]) => flat(each, [...path, name]));
}

export const diffCatalogue: Verb = (noun, open) => {
  noun
    .command('diff [folder]')
    .description('list every difference between the models of a configuration and what their vendors publish')
    .action(async (given: string | undefined, _options, command) => {
      const { output, environment } = open(command);
      const entries = publishedEntries(soundConfiguration(given, environment));
      const items = entries.flatMap(differencesOf);
      const models = entries.length === 1 ? '1 model' : `${entries.length} models`;
      if (items.length === 0 && !output.json) return output.note(`${models} with published prices: no difference.`);
      await showList(output, { items }, DIFFERENCE_COLUMNS);
      if (items.length > 0)
        throw new Failure(
          `${items.length === 1 ? '1 difference' : `${items.length} differences`} in ${models}. With \`from\` instead of a price of its own, a model has the published one.`,
        );
    });
};
