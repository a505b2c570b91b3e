import { readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { showPrice } from '../core/api/show-price';
import type { ModelEntry, Upstream } from '../core/catalog/catalog';
import type { Configuration } from '../core/configuration/configuration';
import { findPublished, type PriceList, type PublishedModel, priceLists } from '../core/configuration/price-lists';
import { readPrice } from '../core/configuration/prices';
import type { Verb } from './command';
import { folderOf, soundConfiguration } from './config';
import { Failure } from './failure';
import { type Columns, confirm, showList, showText } from './output';

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

function publishedEntries({ catalog, written }: Configuration): readonly PublishedEntry[] {
  return catalog.upstreams.flatMap((upstream) =>
    upstream.models.flatMap((model) => {
      const found = publishedOf(upstream, model, written);
      return found === undefined ? [] : [{ upstream, model, list: found.list, published: found.model }];
    }),
  );
}

function publishedOf(upstream: Upstream, { name }: ModelEntry, written: unknown) {
  const list = priceLists().find(({ hosts }) => hosts.includes(upstream.url.hostname));
  const from = fromOf(written, upstream.name, name) ?? list?.vendor;
  const found = from === undefined ? undefined : findPublished(from, name);
  return found === undefined || 'problem' in found ? undefined : found;
}

function fromOf(written: unknown, upstream: string, model: string): string | undefined {
  const endpoints = (written as { serviceEndpoints?: Record<string, { models?: Record<string, unknown> }> })
    .serviceEndpoints;
  return (endpoints?.[upstream]?.models?.[model] as { from?: string } | null | undefined)?.from;
}

/** Returns the values in which the configuration differs from the vendor's published prices. */
export function differencesOf({ upstream, model, list, published }: PublishedEntry): readonly PriceDifference[] {
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

export const checkPrices: Verb = (noun, open) => {
  noun
    .command('check [folder]')
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
          `${items.length === 1 ? '1 difference' : `${items.length} differences`} in ${models}. Write the published values with: tollgate prices update`,
        );
    });
};

export const updatePrices: Verb = (noun, open) => {
  noun
    .command('update [folder]')
    .description(
      'write what vendors publish into gateway.config.yml: context, maxOutput and price of models that differ',
    )
    .option('--yes', 'do not ask for confirmation')
    .action(async (given: string | undefined, { yes }: { yes?: true }, command) => {
      const { output, environment } = open(command);
      const entries = publishedEntries(soundConfiguration(given, environment)).filter(
        (entry) => differencesOf(entry).length > 0,
      );
      const items = entries.flatMap(differencesOf);
      if (items.length === 0) return showText(output, { items, written: false }, ['Nothing differs.']);
      if (!output.json) await showList(output, { items }, DIFFERENCE_COLUMNS);
      const remedy = 'add --yes to write it.';
      if (yes !== true) await confirm(output, { question: 'Write it?', remedy, declined: 'Nothing was written.' });
      const file = join(resolve(folderOf(given, environment)), 'gateway.config.yml');
      await writeWhole(file, updated(await readFile(file, 'utf8'), entries));
      await showText(output, { items, written: true }, [`Written to ${file}. Check it with: tollgate config validate`]);
    });
};

/**
 * Returns the configuration file's text with the published prices; comments and other settings stay. Removes the prices of a model with
 * `from`, because the price list supplies them.
 */
function updated(text: string, entries: readonly PublishedEntry[]): string {
  const document = parseDocument(text);
  for (const { upstream, model, published } of entries) {
    const path = ['serviceEndpoints', upstream.name, 'models', model.name];
    const hasFrom = document.hasIn([...path, 'from']);
    for (const member of ['context', 'maxOutput', 'price'] as const) {
      if (hasFrom) document.deleteIn([...path, member]);
      else document.setIn([...path, member], document.createNode(published[member], { flow: member === 'price' }));
    }
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** Replaces a file atomically, so that the gateway never reads half of it. */
async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.draft`;
  await writeFile(draft, text);
  await rename(draft, file);
}
