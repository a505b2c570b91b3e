import { type CustomerPriceList, CustomerPrices, type PriceOf } from './customer-prices';
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

/** How much of an image the model sees, in the vendors' words. `auto` is what images without a word get. */
export const DETAILS = ['low', 'high', 'original', 'auto'] as const;
/** `most` stands for a word that is unknown or given twice. */
export type ImageDetail = (typeof DETAILS)[number] | 'most';

export const NORMALIZING = ['nfkc', 'none'] as const;
export type Normalizing = (typeof NORMALIZING)[number];

export const UNPRICED_TOOLS = ['forward', 'refuse'] as const;
type UnpricedTools = (typeof UNPRICED_TOOLS)[number];

interface Timeouts {
  readonly connectMs: number;
  readonly headersMs: number;
  /** The longest time from the request to the first content of a stream; undefined for no limit. */
  readonly firstTokenMs: number | undefined;
  /** The longest time between two bytes of an answer. */
  readonly idleMs: number;
  /** The longest time for the head of an unstreamed answer whose limit explains more than `headersMs`. */
  readonly answerMs: number;
}

/** Where the gateway reads a vendor's own reports of usage and cost. */
export interface Reporting {
  readonly vendor: 'anthropic' | 'openai';
  readonly url: URL;
  /** The key for the vendor's admin API; undefined when its variable is not set. */
  readonly credential: string | undefined;
  /** Why there is no credential; undefined when there is one. */
  readonly missing: string | undefined;
  /** The vendor's id of the upstream's credential; undefined for everything that the organisation used. */
  readonly apiKeyId: string | undefined;
  /** The workspace or project whose costs are compared; undefined for all. */
  readonly workspaceId: string | undefined;
  /** A difference above this amount on one day raises an alarm. */
  readonly alarmAboveE8: bigint;
}

/** A model provider that the gateway can call: one entry of serviceEndpoints. */
export interface Upstream {
  readonly name: string;
  readonly url: URL;
  readonly adapters: readonly UpstreamAdapter[];
  readonly adapterSettings: unknown;
  /** The platform's credentials for this upstream, at least one. */
  readonly credentials: readonly Credential[];
  /** The credential to use: the first of `credentials` until the gateway chooses one for an attempt. */
  readonly credential: Credential;
  /** Why the gateway does not call this upstream; undefined when it does. */
  readonly disabled: string | undefined;
  readonly tier: Tier;
  readonly weight: number;
  /** The most calls that one process may have under way at this upstream; undefined for no limit. */
  readonly maxConcurrent?: number | undefined;
  readonly allowPrivate: boolean;
  readonly timeouts: Timeouts;
  readonly streamUsage: boolean;
  /** Whether this upstream gets calls of other protocols, translated: after all that speak the call's protocol, never, or on equal terms. */
  readonly translate?: Translate | undefined;
  /** Whether the upstream takes `response.create` over a WebSocket; otherwise each call is a POST. */
  readonly webSocket?: boolean | undefined;
  /** `false`: the gateway does not forward the trace context (`traceparent`) of a call to this upstream. */
  readonly traceContext?: boolean | undefined;
  /** The versions of the Messages protocol that it takes; undefined for all. */
  readonly versions?: ReadonlySet<string> | undefined;
  /** Paths of numbers in reports, and names without a price, that do not raise an alarm. */
  readonly ignoreUsage: ReadonlySet<string>;
  /** Whether the upstream stops working, and charging, when the gateway cancels a call; undefined when the operator does not say. */
  readonly stopsOnCancel?: boolean | undefined;
  /** Whether calls that name no part of the upstream's prompt cache get one of their account's own. */
  readonly isolateCaches?: boolean | undefined;
  /** Members of requests that no table has and that cost nothing at this upstream. */
  readonly freeMembers?: ReadonlySet<string> | undefined;
  /** What happens to requests with tools or members that have no price; undefined (the default) forwards them. */
  readonly unpricedTools?: UnpricedTools | undefined;
  /** undefined: the vendor has no reports, or the operator reads none. */
  readonly reporting?: Reporting | undefined;
  readonly models: readonly ModelEntry[];
}

/** The most tokens that one piece of content outside the request can have. */
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
  /** The most output tokens of one answer; 0 for a model of embeddings. */
  readonly maxOutput: number;
  /** The protocols in which it is served; undefined: all of the upstream's. */
  readonly protocols?: readonly Protocol[] | undefined;
  /** Replaces the upstream's `translate`. */
  readonly translate?: Translate | undefined;
  /** How translated calls tell the model how much to reason; undefined: they do not tell it. */
  readonly reasoning?: ReasoningSetting | undefined;
  /** The output tokens expected of a call without a limit, for comparing candidates. The hold covers `maxOutput`. */
  readonly estimatedMaxTokens: number;
  /**
   * The most tokens of content that the vendor fetches or unpacks, as the operator declares it. Without a bound the hold covers
   * the context window.
   */
  readonly bounds: Bounds;
  /** The most tokens of an image whose data is in the request, by the detail that it asks for. */
  readonly imageTokens: Readonly<Record<ImageDetail, number>>;
  /** The most tokens that the model's tokenizer makes of a byte. */
  readonly tokenizerFactor: number;
  /** How the tokenizer changes text before; undefined: as vendors of the dialect do that the model is asked in. */
  readonly normalizes?: Normalizing | undefined;
  /** Tokens that a vendor adds to a call with tools. */
  readonly toolOverheadTokens: number;
  /** How often a call without a limit may use a vendor's tool, by the tool's meter; once where it is missing. */
  readonly toolUses?: ReadonlyMap<Meter, number> | undefined;
  readonly price: Price;
  /** The release day, as 2026-03-05; undefined when unknown. */
  readonly created?: string | undefined;
}

/** A model at an upstream, as a choice for a call. Routing puts the candidates in order. */
export interface Candidate {
  readonly upstream: Upstream;
  readonly model: ModelEntry;
  /** The upstream's adapter that speaks the call's protocol, or the dialect into which the call is translated. */
  readonly adapter: UpstreamAdapter;
  /** The dialect into which the gateway translates the call; `own` for the adapter's own. Absent: the upstream speaks the call's. */
  readonly dialect?: Protocol | 'own' | undefined;
  /** The model's price there, for comparing. It is computed once because every call compares every candidate. */
  readonly rough: RoughPrice;
  /** What the customer pays for the upstream's other models; undefined: what the upstream charges. */
  readonly priceOf?: PriceOf | undefined;
}

/**
 * The entries of models by the names that vendors answer with, for each requested model. The number is limited, because a vendor
 * may send any name.
 */
const ANSWERING = new WeakMap<ModelEntry, Map<string, ModelEntry>>();
const MAX_ANSWERING = 1_000;

/**
 * Returns the entry of the model that ran a pass, because vendors may let another model answer and name it. A name that the
 * upstream's configuration lacks counts as the requested model: many vendors answer with the name of a snapshot.
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

/** Returns the entry with exactly this name or alias, or else the first with the same normalised name. */
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

/** All entries, across upstreams, of one model. */
export interface Model {
  /** The name shown to clients: that of its best-tier entry. */
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
  /** Finds a model by exactly the name that an upstream itself uses: no alias, no other spelling. */
  findExact(upstream: string, name: string): Model | undefined;
  /** Returns the enabled candidates of a model that speak a protocol, unordered. */
  candidates(model: Model, protocol: Protocol): readonly Candidate[];
  /** Returns the enabled candidates that do not speak a protocol, but for which its calls are translated, unordered. */
  translating(model: Model, protocol: Protocol): readonly Candidate[];
}

/** Why a set of upstreams cannot be routed: one upstream has a name twice. */
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

/** Joins the entries of all upstreams to models and indexes every name. @throws CatalogProblem */
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
      // The cache takes known names only, because guesses must not fill the memory.
      if (!('unknown' in lookup) && lookups.size < 10_000) lookups.set(name, lookup);
      return lookup;
    },
    findExact: (upstream, name) => byNativeName.get(upstream)?.get(name),
    candidates: (model, protocol) => candidatesOf.get(model)?.[protocol] ?? [],
    translating: (model, protocol) => translatingOf.get(model)?.[protocol] ?? [],
  };
}

/** Computes the nearest names only when an error needs them. */
function unknownName(name: string, exact: ReadonlyMap<string, unknown>): Lookup {
  return {
    unknown: true,
    get nearest() {
      return nearestNames(name, exact.keys());
    },
  };
}

/** Returns the protocols in which clients may call a model at an upstream. A model without output serves embeddings and nothing else. */
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

/** Returns the candidates that do not speak a protocol, and whose calls are therefore translated into their dialect. */
function translatingCandidates(model: Model, protocol: Protocol): readonly Candidate[] {
  return model.entries.flatMap((entry) => {
    const target = entry.upstream.disabled === undefined ? translationTarget(entry, protocol) : undefined;
    return target === undefined ? [] : [{ ...entry, ...target, rough: roughPrice(entry.model.price) }];
  });
}

/** Returns the dialect into which calls of a protocol are translated for an entry, and the adapter that speaks it; undefined for none. */
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

/** Returns the protocols in which clients may call a model through a strategy: those it speaks, and those translated for it. */
export function callableIn(entry: Entry): readonly Protocol[] {
  const translated = TRANSLATED.filter((protocol) => translationTarget(entry, protocol) !== undefined);
  return translated.length === 0 ? protocolsOf(entry) : [...protocolsOf(entry), ...translated];
}

function isTranslated(protocol: Protocol): boolean {
  return TRANSLATED.some((each) => each === protocol);
}

/** Whether routing must place a candidate after all that speak the call's protocol. */
export function isLast({ dialect, model, upstream }: Candidate): boolean {
  return dialect !== undefined && (model.translate ?? upstream.translate) !== 'equal';
}

function namesOf(entry: Pick<Entry, 'model'>): readonly string[] {
  return [entry.model.name, ...entry.model.aliases];
}

/**
 * Joins entries of different upstreams to one model if they share a name or an alias, then if they share a normalised name. Two
 * entries of one upstream are never one model. If joining by normalised name would make them one, the groups stay apart and the
 * name is ambiguous.
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
 * Whether a key may call a model. A key without a list may call everything; a list allows a model by any of its names. The
 * catalog resolves the names, so that one of two snapshots of a model does not allow the other.
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
