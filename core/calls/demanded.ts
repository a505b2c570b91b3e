import type { IncomingHttpHeaders } from 'node:http';
import type { ApiKeys, CallKey } from '../accounts/identify';
import { fail, GatewayError } from '../base/errors';
import type { MaybeLater } from '../base/maybe-later';
import { type Candidate, type Catalog, type Entry, entryNamed, type Model, type ModelEntry } from '../catalog/catalog';
import type { PriceOf } from '../catalog/customer-prices';
import {
  type Demands,
  declaredOf,
  type Exclusion,
  exclusionOf,
  isOutside,
  joinDemands,
  readDemands,
  readGivenDemands,
} from '../catalog/demands';
import { pricesFor } from '../catalog/price';
import { readFilter } from '../http/query';
import type { KeySettings } from '../ledger/ledger';
import { memberRow, REQUEST_TABLES, STORE } from '../protocols/request-tables';
import type { Call, ExcludedUpstream, ModelRequest } from './call';

const REQUIRE = 'x-svc-require';

/** Returns what a client demands of the upstreams that may serve its call; undefined for nothing. @throws INVALID_FIELD */
export function demandsIn({ [REQUIRE]: text }: IncomingHttpHeaders): Demands | undefined {
  return text === undefined ? undefined : readFilter(REQUIRE, String(text), readGivenDemands);
}

/** Returns the demands that hold for a call: the client's own, and those of its key, which include the team's and the account's. */
export function demandsUnder(
  { require }: Pick<KeySettings, 'require'>,
  { demands }: { readonly demands?: Demands | undefined },
): Demands | undefined {
  return require === undefined ? demands : joinDemands(readDemands(require), demands);
}

/**
 * Returns a call as upstreams receive it under demands for what happens to its content: it asks the vendor to keep no answer.
 * @throws NO_CANDIDATE_ALLOWED if a member makes the vendor keep, fetch or pass on something, whatever the upstream
 */
export function heldTo(demands: Demands | undefined, request: ModelRequest): ModelRequest {
  if (demands?.areOfContent !== true) return request;
  const member = request.leaves ?? (asksElsewhere(demands, request) ? REGION_MEMBER : undefined);
  if (member !== undefined)
    throw fail('NO_CANDIDATE_ALLOWED', {
      param: member,
      message: `"${member}" may make the vendor keep, fetch or pass on content, or use another region, which the demands of this call exclude: ${demands.text}.`,
      details: { excluded: [] },
    });
  return keepingNothing(request);
}

const REGION_MEMBER = 'inference_geo';

/** Returns whether a call itself asks for a region that is none of the demanded ones. */
function asksElsewhere(demands: Demands, { members }: ModelRequest): boolean {
  const text = members.get(REGION_MEMBER);
  const asked: unknown = text === undefined ? undefined : JSON.parse(text);
  return typeof asked === 'string' && isOutside(demands, asked);
}

/** Returns a call of which the vendor keeps nothing: with `store: false` if its protocol has this member. */
function keepingNothing(request: ModelRequest): ModelRequest {
  if (request.keepsNothing) return request;
  const { protocol, operation, members, edits = [], makes } = request;
  const table = REQUEST_TABLES[protocol];
  const keeping = { ...request, keepsNothing: true } as const;
  if (operation !== undefined || memberRow(table, STORE) === undefined || members.get(STORE) === 'false')
    return keeping;
  const kinds = makes?.filter((kind) => kind !== table.keepsAnswers?.kind);
  return {
    ...keeping,
    members: new Map(members).set(STORE, 'false'),
    edits: [...edits, { member: STORE, set: 'false' }],
    makes: kinds?.length === 0 ? undefined : kinds,
  };
}

/** Returns why an upstream's model may not serve a call, or another model that the call may run there; undefined if both may. */
export function exclusionFor(
  { upstream, model }: Entry,
  { reading: { asked, extras } }: Pick<ModelRequest, 'reading'>,
  demands: Demands,
  priceOf: PriceOf,
): Exclusion | undefined {
  const exclusion = (each: ModelEntry) => {
    const price = priceOf(each);
    return exclusionOf(demands, declaredOf(each, price, asked && pricesFor(price, asked)));
  };
  let found = exclusion(model);
  for (const { models = [] } of extras ?? [])
    for (const { model: name } of models) {
      const further = entryNamed(upstream.models, name);
      if (further !== undefined) found ??= exclusion(further);
    }
  return found;
}

/** Returns whether the exclusions of a call depend on nothing but its demands and its prices. */
export function isUsual({ reading: { asked, extras } }: Pick<ModelRequest, 'reading'>): boolean {
  return asked === undefined && extras === undefined;
}

type RoutedCall = Pick<Call, 'facts' | 'reroute'> & { readonly key: CallKey; readonly request: ModelRequest };

/** What narrows the candidates of a call. */
export interface Narrowing {
  readonly request: ModelRequest;
  readonly demands: Demands | undefined;
  /** The key's settings by which the call is routed, of which `markup` decides what it pays. */
  readonly settings: KeySettings;
}

/**
 * Chooses the candidates of a call under its demands. The settings of the key, which may demand more, are those that this node knows. They
 * are read again before the call is refused, and if the ledger has newer ones, the candidates are chosen again.
 * @param choose returns the candidates. It may be called again
 * @throws NO_CANDIDATE_ALLOWED
 */
export function underDemands<T extends { readonly candidates: readonly Candidate[] }>(
  { keys }: { readonly keys: Pick<ApiKeys, 'confirm'> },
  call: RoutedCall,
  choose: (narrowing: Narrowing) => T,
): MaybeLater<T> {
  let used = call.key.settings;
  const chosen = (settings: KeySettings): T => {
    used = settings;
    const demands = demandsUnder(settings, call.request);
    call.facts.demands = demands;
    const request = heldTo(demands, call.request);
    if (request !== call.request) Object.assign(call, { request });
    return choose({ request, demands, settings });
  };
  const isSame = (settings: KeySettings) => {
    const demands = demandsUnder(settings, call.request);
    return demands === call.facts.demands && (demands?.areOfPrices !== true || settings.markup === used.markup);
  };
  call.reroute = (settings) => {
    if (!isSame(settings)) Object.assign(call, { candidates: chosen(settings).candidates });
  };
  try {
    return chosen(used);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'NO_CANDIDATE_ALLOWED') throw error;
    return keys.confirm(call.key).then(({ settings }) => {
      if (isSame(settings)) throw error;
      return chosen(settings);
    });
  }
}

/** Returns the upstreams that the demands of a call exclude, each with the first demand that it does not meet. */
function excludedOf(
  { customerPrices }: Catalog,
  entries: readonly Entry[],
  demands: Demands,
  { request, settings }: Narrowing,
): readonly ExcludedUpstream[] {
  const priceOf = customerPrices.priceOf(settings.markup);
  return entries.flatMap((entry) => {
    const exclusion = exclusionFor(entry, request, demands, priceOf);
    return exclusion === undefined ? [] : [{ upstream: entry.upstream.name, ...exclusion }];
  });
}

/**
 * Returns the error for a call whose demands leave no candidate; undefined if they exclude none of the `shown` upstreams. Its client learns
 * of those alone, its record has all upstreams of the model.
 */
export function noCandidateAllowed(
  { catalog }: { readonly catalog: Catalog },
  { facts }: Pick<Call, 'facts'>,
  { entries }: Pick<Model, 'entries'>,
  shown: readonly Entry[],
  narrowing: Narrowing,
): GatewayError | undefined {
  const { demands } = narrowing;
  const excluded = demands === undefined ? [] : excludedOf(catalog, shown, demands, narrowing);
  if (demands === undefined || excluded.length === 0) return undefined;
  facts.routing.excluded = excludedOf(catalog, entries, demands, narrowing);
  return fail('NO_CANDIDATE_ALLOWED', {
    message: `No upstream of this model meets the demands of this call: ${demands.text}. \`details.excluded\` has the reasons.`,
    details: { excluded },
  });
}
