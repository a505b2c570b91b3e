import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import { mapValues } from '../base/collections';
import { asObject, memberOf } from '../base/json-values';
import { hint, type LocatedProblem } from './problems';
import type { FactSettings, GatewaySettings, ModelSettings } from './schema';

/** A model as its vendor publishes it. A configuration refers to it with `from`. */
export type PublishedModel = Pick<ModelSettings, 'context' | 'maxOutput' | 'price'> &
  Partial<Pick<ModelSettings, 'created' | 'facts' | 'imageTokens' | 'normalizes' | 'toolOverheadTokens'>> & {
    /** The date on which the prices were read from the vendor's page, such as 2026-10-24. */
    readonly date: string;
  };

/** The published prices and facts of one vendor: a file of `catalogue/`. */
export interface PriceList {
  /** The name of the vendor: the file's name without `.yml`. */
  readonly vendor: string;
  /** The URL of the vendor's price page. */
  readonly source: string;
  /** The host names of the vendor's own API. */
  readonly hosts: readonly string[];
  /** What the vendor says of all its models. */
  readonly facts?: FactSettings;
  readonly models: Readonly<Record<string, PublishedModel>>;
}

const FOLDER = join(__dirname, __filename.endsWith('.ts') ? '../../catalogue' : '../../../catalogue');

let lists: readonly PriceList[] | undefined;

/** Returns the price lists that this version of Tollgate contains, ordered by vendor. */
export function priceLists(): readonly PriceList[] {
  lists ??= readdirSync(FOLDER)
    .sort()
    .map((file) => ({
      vendor: basename(file, '.yml'),
      ...(parse(readFileSync(join(FOLDER, file), 'utf8')) as Omit<PriceList, 'vendor'>),
    }));
  return lists;
}

type Endpoints = Readonly<Record<string, object | null>>;

/**
 * Adds the published context, limit, price and facts to each model with `from: vendor`. If the vendor's list has the model under another
 * name, the setting is `from: vendor/model`. Values in the configuration take precedence, also the facts of the upstream.
 */
export function withPublishedPrices(value: unknown, problems: LocatedProblem[]): unknown {
  const endpoints = memberOf(value, 'serviceEndpoints') as Endpoints | undefined;
  if (typeof endpoints !== 'object' || endpoints === null) return value;
  const completed = mapValues(endpoints as Record<string, unknown>, (endpoint, upstream) => {
    const models = memberOf(endpoint, 'models');
    if (typeof models !== 'object' || models === null) return endpoint;
    const path = ['serviceEndpoints', upstream, 'models'];
    return {
      ...(endpoint as object),
      models: mapValues(models as Record<string, unknown>, (model, name) =>
        completedModel(model, name, endpoint, [...path, name], problems),
      ),
    };
  });
  return { ...(value as object), serviceEndpoints: completed };
}

function completedModel(
  model: unknown,
  name: string,
  endpoint: unknown,
  path: readonly string[],
  problems: LocatedProblem[],
): unknown {
  const from = memberOf(model, 'from');
  if (typeof from !== 'string') return model;
  const found = findPublished(from, name);
  if ('problem' in found) {
    problems.push({ path: [...path, 'from'], message: found.problem });
    return model;
  }
  const { list, model: publishedModel } = found;
  const { date, price, facts: ofModel, ...published } = publishedModel;
  const ofList = isOfVendor(list, memberOf(endpoint, 'url')) ? list.facts : undefined;
  const facts = factsBeside({ ...ofList, ...ofModel }, memberOf(endpoint, 'facts'), memberOf(model, 'facts'));
  return { ...published, price: { ...price, source: list.source, date }, ...(model as object), ...facts };
}

/** Returns whether an upstream is the vendor's own API. What the vendor says of regions and of data does not hold at other hosts of its models. */
function isOfVendor({ hosts }: PriceList, url: unknown): boolean {
  return typeof url === 'string' && URL.canParse(url) && hosts.includes(new URL(url).hostname);
}

/** Returns a model's facts with those published ones that neither the model nor its upstream has. Facts that are no object stay, as the check reports them. */
function factsBeside(published: FactSettings, ofUpstream: unknown, ofModel: unknown): { readonly facts?: unknown } {
  if (ofModel !== undefined && asObject(ofModel) === undefined) return {};
  const names = new Set(Object.keys(asObject(ofUpstream) ?? {}));
  const added = Object.entries(published).filter(([name]) => !names.has(name));
  return added.length === 0 ? {} : { facts: { ...Object.fromEntries(added), ...asObject(ofModel) } };
}

/** Finds the published model to which the setting `from` of a model refers. */
export function findPublished(
  from: string,
  name: string,
): { readonly list: PriceList; readonly model: PublishedModel } | { readonly problem: string } {
  const [vendor = '', ...rest] = from.split('/');
  const list = priceLists().find((each) => each.vendor === vendor);
  const vendors = priceLists().map((each) => each.vendor);
  if (list === undefined) return { problem: `price list "${vendor}" does not exist${hint(vendor, vendors)}` };
  const wanted = rest.length === 0 ? name : rest.join('/');
  const model = Object.hasOwn(list.models, wanted) ? list.models[wanted] : undefined;
  return model === undefined
    ? { problem: `the price list "${vendor}" has no model "${wanted}"${hint(wanted, Object.keys(list.models))}` }
    : { list, model };
}

/**
 * Finds the vendor's own price of a configured model. `from` names its list and model. Without `from`, the list has it if the vendor itself
 * serves the upstream and the names are the same.
 */
export function findVendorPrice(
  { serviceEndpoints }: Pick<GatewaySettings, 'serviceEndpoints'>,
  upstream: string,
  name: string,
) {
  const settings = serviceEndpoints[upstream];
  const own = priceLists().find((list) => isOfVendor(list, settings?.url));
  const from = settings?.models[name]?.from ?? own?.vendor;
  const found = from === undefined ? undefined : findPublished(from, name);
  return found === undefined || 'problem' in found ? undefined : found;
}
