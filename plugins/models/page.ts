import { invalidParam } from '../../core/base/errors';
import type { Catalog, Model } from '../../core/catalog/catalog';
import { type Filters, integerReader, type Reader, reader, readFilter, readText } from '../../core/http/query';

const MAX_MODELS = 1_000;

const readId = (description: string) => reader({ ...readText.schema, description }, (text) => readText(text));

/** The query parameters that clients such as Codex and the SDK of the Messages protocol send. */
export const MODELS_QUERY = {
  limit: integerReader(1, MAX_MODELS, { description: 'How many models to list; default: all.' }),
  after_id: readId('Lists the models after this one: `last_id` of the previous page.'),
  before_id: readId('Lists the models before this one: `first_id` of the previous page.'),
  client_version: readId('Adds `models`, which Codex reads.'),
} satisfies Record<string, Reader<unknown>>;

/** Reads the known parameters and ignores all others, because SDKs add their own, such as `beta`. @throws INVALID_FIELD that names the parameter */
export function readModelsQuery(query: URLSearchParams): Filters<typeof MODELS_QUERY> {
  const read: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(MODELS_QUERY)) {
    const [text, ...others] = query.getAll(name);
    if (others.length > 0) throw invalidParam(name, 'is given twice');
    if (text !== undefined) read[name] = readFilter(name, text, each as Reader<unknown>);
  }
  return read as Filters<typeof MODELS_QUERY>;
}

interface ModelPage<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
}

/**
 * Returns the models of one page, in the order of the catalog. `show` returns undefined for a model that the page omits. The id of such a
 * model is still valid in `after_id` and `before_id`.
 * @throws INVALID_FIELD for an id of no model
 */
export function pageOfModels<T>(
  catalog: Pick<Catalog, 'models' | 'find'>,
  { limit = Number.POSITIVE_INFINITY, after_id: after, before_id: before }: Partial<Filters<typeof MODELS_QUERY>>,
  show: (model: Model) => T | undefined,
): ModelPage<T> {
  if (after !== undefined && before !== undefined)
    throw invalidParam('before_id', 'expected either after_id or before_id');
  const isBackwards = before !== undefined;
  const from = after === undefined ? 0 : placeOf(catalog, 'after_id', after) + 1;
  const to = before === undefined ? undefined : placeOf(catalog, 'before_id', before);
  const asked = catalog.models.slice(from, to);
  const items: T[] = [];
  for (const model of isBackwards ? asked.reverse() : asked) {
    const item = show(model);
    if (item === undefined) continue;
    if (items.length === limit) return { items: isBackwards ? items.reverse() : items, hasMore: true };
    items.push(item);
  }
  return { items: isBackwards ? items.reverse() : items, hasMore: false };
}

function placeOf({ models, find }: Pick<Catalog, 'models' | 'find'>, name: string, id: string): number {
  const lookup = find(id);
  const place = 'found' in lookup ? models.indexOf(lookup.found) : -1;
  if (place === -1) throw invalidParam(name, 'expected the id of a model');
  return place;
}
