import { type CustomerPriceList, CustomerPrices, type PriceOf } from './customer-prices';
import type { ModelFacts } from './facts';
import { nearestNames, normaliseModelName } from './model-names';
import { type Price, type RoughPrice, roughPrice } from './price';
import { forEachProtocol, hasOutput, type Protocol, TRANSLATED } from './protocols';
import type { Credential, ReasoningSetting, UpstreamAdapter } from './upstream';
import type { Meter, Pass } from './usage';

export type Tier = 'official' | 'high-sla' | 'standard';

/** The tiers of upstreams, best first. */
export const TIERS: readonly Tier[] = ['official', 'high-sla', 'standard'];

export const TRANSLATE = ['last', 'never', 'equal'] as const;
type Translate = (typeof TRANSLATE)[number];

/** How much detail of an image the model sees, in the vendors' words. An image without such a word gets `auto`. */
export const DETAILS = ['low', 'high', 'original', 'auto'] as const;
/** The detail level of an image. `most`: the request's word is unknown or occurs twice, so the largest number of tokens is assumed. */
export type ImageDetail = (typeof DETAILS)[number] | 'most';

export const NORMALIZING = ['nfkc', 'none'] as const;
export type Normalizing = (typeof NORMALIZING)[number];

export const UNPRICED_TOOLS = ['forward', 'refuse'] as const;
type UnpricedTools = (typeof UNPRICED_TOOLS)[number];

interface Timeouts {
  readonly connectMs: number;
  readonly headersMs: number;
  /** The most milliseconds from the request to the first content of a stream; undefined for no limit. */
  readonly firstTokenMs: number | undefined;
  /** The most milliseconds between two bytes of an answer. */
  readonly idleMs: number;
  /** The most milliseconds until the head of an unstreamed answer. It applies if the longest allowed answer may take more than `headersMs`. */
  readonly answerMs: number;
}

/** Where the gateway reads a vendor's own reports of usage and cost. */
export interface Reporting {
  readonly vendor: 'anthropic' | 'openai';
  readonly url: URL;
  /** The key for the vendor's admin API; undefined if its environment variable is not set. */
  readonly credential: string | undefined;
  /** Why `credential` is undefined; undefined if it is set. */
  readonly missing: string | undefined;
  /** The vendor's id of the API key whose usage the gateway reads; undefined for the usage of the whole organization. */
  readonly apiKeyId: string | undefined;
  /** The workspace or project whose costs are compared; undefined for all of them. */
  readonly workspaceId: string | undefined;
  /** How far vendor and gateway may differ on one day without an alarm, in 1e-8 USD. */
  readonly alarmAboveE8: bigint;
}

/** A model provider that the gateway can call: one entry of serviceEndpoints. */
export interface Upstream {
  readonly name: string;
  readonly url: URL;
  readonly adapters: readonly UpstreamAdapter[];
  readonly adapterSettings: unknown;
  /** The platform's credentials for this upstream; at least one. */
  readonly credentials: readonly Credential[];
  /** The credential for the next attempt: the first of `credentials` until the gateway chooses another one. */
  readonly credential: Credential;
  /** Why the gateway does not call this upstream; undefined if the upstream is enabled. */
  readonly disabled: string | undefined;
  readonly tier: Tier;
  readonly weight: number;
  /** The most concurrent calls from one process to this upstream; undefined for no limit. */
  readonly maxConcurrent?: number | undefined;
  readonly allowPrivate: boolean;
  readonly timeouts: Timeouts;
  readonly streamUsage: boolean;
  /** Whether the upstream gets translated calls of other protocols: `last`, after upstreams that speak the call's protocol; `never`; or `equal` to them. */
  readonly translate?: Translate | undefined;
  /** Whether the upstream accepts `response.create` over a WebSocket; otherwise the gateway sends each call as a POST. */
  readonly webSocket?: boolean | undefined;
  /** `false`: the gateway does not forward the trace context (`traceparent`) of a call to this upstream. */
  readonly traceContext?: boolean | undefined;
  /** The versions of the Messages protocol that the upstream accepts; undefined for all. */
  readonly versions?: ReadonlySet<string> | undefined;
  /** The paths of numbers in usage reports, and the names of things without a price, that raise no alarm because they cost nothing. */
  readonly ignoreUsage: ReadonlySet<string>;
  /** Whether the upstream stops working, and charging, when the gateway cancels a call; undefined if the operator has not configured it. */
  readonly stopsOnCancel?: boolean | undefined;
  /** Whether the gateway adds a cache key of the account to calls without a cache key. Other accounts then cannot use the account's cached prompts. */
  readonly isolateCaches?: boolean | undefined;
  /** Names of request members that the gateway does not know, but that cost nothing at this upstream according to its operator. */
  readonly freeMembers?: ReadonlySet<string> | undefined;
  /** Whether requests with tools or members that have no price are forwarded or refused; undefined forwards them. */
  readonly unpricedTools?: UnpricedTools | undefined;
  /** Where to read the vendor's reports; undefined if it has none or none are configured. */
  readonly reporting?: Reporting | undefined;
  readonly models: readonly ModelEntry[];
}

/** The most tokens that one image or document at a URL can have; undefined for no known limit. */
interface Bounds {
  readonly imageByUrl: number | undefined;
  readonly documentByUrl: number | undefined;
}

/** A model at one upstream. */
export interface ModelEntry {
  /** The upstream's own name of the model. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly context: number;
  /** The most output tokens of one answer; 0 for an embeddings model. */
  readonly maxOutput: number;
  /** The protocols in which this upstream serves the model; undefined for all protocols of the upstream. */
  readonly protocols?: readonly Protocol[] | undefined;
  /** The model's own value of `translate`, instead of the upstream's; undefined: the upstream's value applies. */
  readonly translate?: Translate | undefined;
  /** How translated calls set the amount of reasoning for the model; undefined if they must not set it. */
  readonly reasoning?: ReasoningSetting | undefined;
  /** The expected output tokens of a call without a limit, for comparing candidates. The hold always covers `maxOutput`. */
  readonly estimatedMaxTokens: number;
  /** The most tokens of content that the vendor fetches or unpacks, as the operator declares. Without a bound, the hold covers the context window. */
  readonly bounds: Bounds;
  /** The most tokens of an image whose data is in the request, by its requested detail. */
  readonly imageTokens: Readonly<Record<ImageDetail, number>>;
  /** The most tokens that the model's tokenizer makes from one byte. */
  readonly tokenizerFactor: number;
  /** How the tokenizer normalizes text before it counts; undefined: as is usual for vendors of the upstream's dialect. */
  readonly normalizes?: Normalizing | undefined;
  /** How many tokens the vendor adds to a call with tools. */
  readonly toolOverheadTokens: number;
  /** How often a call without a limit may use a vendor's tool, by the tool's meter. A tool whose meter is absent may be used once. */
  readonly toolUses?: ReadonlyMap<Meter, number> | undefined;
  readonly price: Price;
  /** What is declared of the model beside its price; undefined if nothing is. */
  readonly facts?: ModelFacts | undefined;
  /** The release day, such as 2026-03-05; undefined if unknown. */
  readonly created?: string | undefined;
}

/** A model at an upstream that can serve a call. Routing ranks the candidates. */
export interface Candidate {
  readonly upstream: Upstream;
  readonly model: ModelEntry;
  /** The upstream's adapter for the call's protocol, or for the dialect into which the gateway translates the call. */
  readonly adapter: UpstreamAdapter;
  /** The dialect into which the gateway translates the call; `own` for the adapter's own dialect. Absent: the upstream speaks the call's protocol. */
  readonly dialect?: Protocol | 'own' | undefined;
  /** The model's approximate price at the upstream, for ranking. It is computed once, because every call compares all candidates. */
  readonly rough: RoughPrice;
  /** Returns what the customer pays for any model of the upstream; undefined: the customer pays the upstream's prices. */
  readonly priceOf?: PriceOf | undefined;
}

/** Caches which model entry an answer's model name means, for each requested model. The size is limited, because a vendor may send any name. */
const ANSWERING = new WeakMap<ModelEntry, Map<string, ModelEntry>>();
const MAX_ANSWERING = 1_000;

/**
 * Returns the entry of the model that ran a pass (one run of a model), because another model than the requested one may answer. A name that
 * the upstream's configuration lacks counts as the requested model, because many vendors answer with the name of a snapshot.
 */
export function entryOf(asked: Pick<Candidate, 'upstream' | 'model'>, { model: name }: Pass): ModelEntry {
  const { model } = asked;
  if (name === undefined || name === model.name) return model;
  const answering = ANSWERING.get(model) ?? new Map<string, ModelEntry>();
  const known = answering.get(name);
  if (known !== undefined) return known;
  const found = findEntry(asked, name);
  if (answering.size < MAX_ANSWERING) ANSWERING.set(model, answering.set(name, found));
  return found;
}

function findEntry({ upstream: { models }, model }: Pick<Candidate, 'upstream' | 'model'>, name: string): ModelEntry {
  return entryNamed([model, ...models], name) ?? model;
}

/** Returns the entry with exactly this name or alias. If there is none, returns the first entry with the same normalized name. */
export function entryNamed(models: readonly ModelEntry[], name: string): ModelEntry | undefined {
  const exact = models.find((each) => namesOf({ model: each }).includes(name));
  if (exact !== undefined) return exact;
  const normalised = normaliseModelName(name);
  return models.find((each) => normaliseModelName(each.name) === normalised);
}

export interface Entry {
  readonly upstream: Upstream;
  readonly model: ModelEntry;
}

/** One model with its entries at all upstreams. */
export interface Model {
  /** The name that clients see: the one that the upstream of the best tier uses. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly entries: readonly Entry[];
}

export type Lookup =
  | { readonly found: Model }
  | { readonly ambiguous: readonly string[] }
  | { readonly unknown: true; readonly nearest: readonly string[] };

export interface Catalog {
  readonly upstreams: readonly Upstream[];
  readonly models: readonly Model[];
  readonly customerPrices: CustomerPrices;
  find(name: string): Lookup;
  /** Returns the model whose name at the upstream is exactly `name`. Ignores aliases and other spellings. */
  findExact(upstream: string, name: string): Model | undefined;
  /** Returns the enabled candidates of a model that speak a protocol, unordered. */
  candidates(model: Model, protocol: Protocol): readonly Candidate[];
  /** Returns the enabled candidates of a model for which the gateway must translate calls of a protocol, unordered. */
  translating(model: Model, protocol: Protocol): readonly Candidate[];
}

/** Reports that upstreams cannot be routed, because one upstream uses the same name for two models. */
export class CatalogProblem extends Error {
  override readonly name = 'CatalogProblem';
  constructor(
    message: string,
    readonly upstream: string,
    readonly model: string,
  ) {
    super(message);
  }
}

/** Groups the entries of all upstreams into models and indexes every name. @throws CatalogProblem */
export function buildCatalog(
  upstreams: readonly Upstream[],
  customerPrices: ReadonlyMap<string, CustomerPriceList> = new Map(),
): Catalog {
  const models = joinEntries(upstreams).map(toModel);
  const exact = indexNames(models, (name) => name);
  const normalised = indexNames(models, normaliseModelName);
  const byNativeName = indexNativeNames(models);
  const lookups = new Map<string, Lookup>();
  const candidatesOf = new Map(
    models.map((model) => [model, forEachProtocol((protocol) => enabledCandidates(model, protocol))]),
  );
  const translatingOf = new Map(
    models.map((model) => [model, forEachProtocol((protocol) => translatingCandidates(model, protocol))]),
  );

  function look(name: string): Lookup {
    const meanings = exact.get(name) ?? normalised.get(normaliseModelName(name)) ?? [];
    const [only, ...others] = meanings;
    if (only === undefined) return unknownName(name, exact);
    if (others.length > 0) return { ambiguous: meanings.map((model) => model.name).sort() };
    return { found: only };
  }

  return {
    upstreams,
    models,
    customerPrices: new CustomerPrices(customerPrices),
    find(name) {
      const known = lookups.get(name);
      if (known !== undefined) return known;
      const lookup = look(name);
      // Caches only known names, because names that clients guess must not fill the memory.
      if (!('unknown' in lookup) && lookups.size < 10_000) lookups.set(name, lookup);
      return lookup;
    },
    findExact: (upstream, name) => byNativeName.get(upstream)?.get(name),
    candidates: (model, protocol) => candidatesOf.get(model)?.[protocol] ?? [],
    translating: (model, protocol) => translatingOf.get(model)?.[protocol] ?? [],
  };
}

/** Returns the result of looking up an unknown name. The nearest known names are computed only when an error needs them. */
function unknownName(name: string, exact: ReadonlyMap<string, unknown>): Lookup {
  return {
    unknown: true,
    get nearest() {
      return nearestNames(name, exact.keys());
    },
  };
}

/** Returns the protocols in which clients may call a model at an upstream. A model without output tokens serves only embeddings. */
export function protocolsOf({ upstream: { adapters }, model: { protocols, maxOutput } }: Entry): readonly Protocol[] {
  return adapters
    .flatMap((adapter) => adapter.protocols)
    .filter((each) => hasOutput(each) === maxOutput > 0 && protocols?.includes(each) !== false);
}

function enabledCandidates(model: Model, protocol: Protocol): readonly Candidate[] {
  return model.entries.flatMap((entry) => {
    const isServed = entry.upstream.disabled === undefined && protocolsOf(entry).includes(protocol);
    const adapter = entry.upstream.adapters.find((each) => each.protocols.includes(protocol));
    return isServed && adapter !== undefined ? [{ ...entry, adapter, rough: roughPrice(entry.model.price) }] : [];
  });
}

/** Returns the candidates that do not speak a protocol, so that the gateway translates the calls into their dialect. */
function translatingCandidates(model: Model, protocol: Protocol): readonly Candidate[] {
  return model.entries.flatMap((entry) => {
    const target = entry.upstream.disabled === undefined ? translationTarget(entry, protocol) : undefined;
    return target === undefined ? [] : [{ ...entry, ...target, rough: roughPrice(entry.model.price) }];
  });
}

/** Returns the dialect into which calls of a protocol are translated for an entry, and the adapter of that dialect; undefined if there is none. */
export function translationTarget(
  entry: Entry,
  protocol: Protocol,
): { readonly dialect: Protocol | 'own'; readonly adapter: UpstreamAdapter } | undefined {
  const { upstream, model } = entry;
  const native = protocolsOf(entry);
  if (!isTranslated(protocol) || native.includes(protocol) || model.maxOutput === 0) return undefined;
  if ((model.translate ?? upstream.translate) === 'never') return undefined;
  const dialect = TRANSLATED.find((each) => native.includes(each));
  const adapter = upstream.adapters.find(({ own, protocols }) =>
    dialect === undefined ? own !== undefined : protocols.includes(dialect),
  );
  return adapter && { dialect: dialect ?? 'own', adapter };
}

/** Returns the protocols in which clients may call a model through a routing strategy: the model's own, and those that the gateway translates for it. */
export function callableIn(entry: Entry): readonly Protocol[] {
  const translated = TRANSLATED.filter((protocol) => translationTarget(entry, protocol) !== undefined);
  return translated.length === 0 ? protocolsOf(entry) : [...protocolsOf(entry), ...translated];
}

function isTranslated(protocol: Protocol): boolean {
  return TRANSLATED.some((each) => each === protocol);
}

/** Returns whether routing must rank a candidate after all candidates that speak the call's protocol. */
export function isLast({ dialect, model, upstream }: Candidate): boolean {
  return dialect !== undefined && (model.translate ?? upstream.translate) !== 'equal';
}

function namesOf(entry: Pick<Entry, 'model'>): readonly string[] {
  return [entry.model.name, ...entry.model.aliases];
}

/**
 * Groups entries of different upstreams into one model if they share a name or alias, then if they share a normalized name. Two entries of
 * one upstream never become one model. If a normalized name would group them, the groups stay separate, and the name is ambiguous.
 */
function joinEntries(upstreams: readonly Upstream[]): Entry[][] {
  const groups = new Set<Entry[]>();
  const groupOf = new Map<string, Entry[]>();
  for (const upstream of upstreams) {
    for (const model of upstream.models) {
      let group: Entry[] = [{ upstream, model }];
      groups.add(group);
      for (const name of namesOf({ model })) {
        const other = groupOf.get(name);
        if (other !== undefined && other !== group) group = mergeExact(groups, groupOf, other, group, name);
        groupOf.set(name, group);
      }
    }
  }
  return joinByNormalisedName(groups);
}

function mergeExact(
  groups: Set<Entry[]>,
  groupOf: Map<string, Entry[]>,
  first: Entry[],
  second: Entry[],
  name: string,
): Entry[] {
  const clash = clashOf(first, second);
  if (clash !== undefined) {
    const [one, two] = clash;
    throw new CatalogProblem(
      `"${name}" makes "${one.model.name}" and "${two.model.name}" of upstream "${one.upstream.name}" the same model`,
      two.upstream.name,
      two.model.name,
    );
  }
  groups.delete(second);
  first.push(...second);
  for (const entry of second)
    for (const each of namesOf(entry)) if (groupOf.get(each) === second) groupOf.set(each, first);
  return first;
}

function clashOf(first: readonly Entry[], second: readonly Entry[]): [Entry, Entry] | undefined {
  for (const one of first) {
    const two = second.find((entry) => entry.upstream === one.upstream);
    if (two !== undefined) return [one, two];
  }
  return undefined;
}

function joinByNormalisedName(groups: Set<Entry[]>): Entry[][] {
  const byName = new Map<string, Set<Entry[]>>();
  for (const group of groups) {
    for (const name of new Set(group.flatMap(namesOf).map(normaliseModelName))) {
      byName.set(name, (byName.get(name) ?? new Set()).add(group));
    }
  }
  const mergedInto = new Map<Entry[], Entry[]>();
  const current = (group: Entry[]): Entry[] => {
    const next = mergedInto.get(group);
    return next === undefined ? group : current(next);
  };
  for (const sharing of byName.values()) {
    const distinct = [...new Set([...sharing].map(current))];
    const everyEntry = distinct.flat();
    const upstreamsOnce = new Set(everyEntry.map((entry) => entry.upstream)).size === everyEntry.length;
    const [first, ...others] = distinct;
    if (first === undefined || others.length === 0 || !upstreamsOnce) continue;
    for (const other of others) {
      first.push(...other);
      groups.delete(other);
      mergedInto.set(other, first);
    }
  }
  return [...groups];
}

function toModel(entries: Entry[]): Model {
  const [best] = [...entries].sort((a, b) => TIERS.indexOf(a.upstream.tier) - TIERS.indexOf(b.upstream.tier));
  const name = best?.model.name ?? '';
  const aliases = [...new Set(entries.flatMap(namesOf))].filter((each) => each !== name);
  return { name, aliases, entries };
}

function indexNames(models: readonly Model[], key: (name: string) => string): Map<string, readonly Model[]> {
  const index = new Map<string, Model[]>();
  for (const model of models) {
    for (const name of new Set([model.name, ...model.aliases].map(key))) {
      const meanings = index.get(name);
      if (meanings === undefined) index.set(name, [model]);
      else meanings.push(model);
    }
  }
  return index;
}

/** Indexes models by upstream, then by that upstream's own name. */
function indexNativeNames(models: readonly Model[]): ReadonlyMap<string, ReadonlyMap<string, Model>> {
  const index = new Map<string, Map<string, Model>>();
  for (const each of models) {
    for (const { upstream, model } of each.entries) {
      index.set(upstream.name, (index.get(upstream.name) ?? new Map<string, Model>()).set(model.name, each));
    }
  }
  return index;
}

/**
 * Returns whether a key may call a model. A key without a list may call every model; a list allows a model by any of its names. The catalog
 * resolves the names, so that a list with one snapshot of a model does not allow another snapshot.
 */
export function isAllowed(
  catalog: Catalog,
  candidates: readonly Pick<Candidate, 'model'>[],
  allowedModels: readonly string[] | undefined,
): boolean {
  if (allowedModels === undefined) return true;
  return allowedModels.some((name) => {
    const lookup = catalog.find(name);
    if ('found' in lookup) return candidates.some(({ model }) => isEntryOf(lookup.found, model));
    if (!('ambiguous' in lookup)) return false;
    return catalog.models.some(
      (each) => lookup.ambiguous.includes(each.name) && candidates.some(({ model }) => isEntryOf(each, model)),
    );
  });
}

function isEntryOf({ entries }: Model, model: ModelEntry): boolean {
  return entries.some((entry) => entry.model === model);
}
