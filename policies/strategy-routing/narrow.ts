import { RecentlyUsed } from '../../core/base/recently-used';
import type { ModelRequest } from '../../core/calls/call';
import { exclusionFor, isUsual, type Narrowing } from '../../core/calls/demanded';
import type { Catalog, Entry } from '../../core/catalog/catalog';
import type { Demands } from '../../core/catalog/demands';
import { needsOf } from '../../core/protocols/needs';
import { type CandidateSet, subsetOf } from './choose';

/** How many narrowed sets are cached for one set. A limit is needed, because clients may demand anything. */
const MAX_REMEMBERED = 200;

const ALLOWED = new WeakMap<CandidateSet, RecentlyUsed<CandidateSet>>();

/** Returns the candidates that meet the demands of a call. Equal demands get the same set. */
export function allowedOf(set: CandidateSet, narrowing: Narrowing, catalog: Catalog): CandidateSet {
  const { demands, request, settings } = narrowing;
  if (demands === undefined) return set;
  if (!isUsual(request)) return findAllowed(set, demands, narrowing, catalog);
  const known = ALLOWED.get(set) ?? new RecentlyUsed<CandidateSet>(MAX_REMEMBERED);
  ALLOWED.set(set, known);
  const name = demands.areOfPrices ? `${demands.text}\n${settings.markup ?? ''}` : demands.text;
  return known.get(name) ?? known.set(name, findAllowed(set, demands, narrowing, catalog));
}

function findAllowed(
  set: CandidateSet,
  demands: Demands,
  { request, settings }: Narrowing,
  { customerPrices }: Catalog,
): CandidateSet {
  const priceOf = customerPrices.priceOf(settings.markup);
  return subsetOf(set, (at) => exclusionFor(set.candidates[at] as Entry, request, demands, priceOf) === undefined);
}

const FITTING = new WeakMap<CandidateSet, Map<number, CandidateSet>>();

/** More contexts than any set of candidates has. */
const MANY_CONTEXTS = 1_024;

/**
 * Returns the candidates without those whose facts say that they lack what the body needs, or whose context is smaller than its estimated
 * input. Where no other may be tried, none is left out.
 */
export function fittingOf(set: CandidateSet, request: ModelRequest): CandidateSet {
  const { inputTokensEstimate, inputs = 1 } = request;
  const tokens = inputs > 1 ? inputTokensEstimate / inputs : inputTokensEstimate;
  if (set.lacking === 0 && tokens <= (set.contexts[0] ?? tokens)) return set;
  const needed = needsOf(request, set.lacking);
  const firstFitting = set.contexts.findIndex((context) => context >= tokens);
  const smaller = firstFitting === -1 ? set.contexts.length : firstFitting;
  if (needed === 0 && smaller === 0) return set;
  const known = FITTING.get(set) ?? new Map<number, CandidateSet>();
  FITTING.set(set, known);
  const name = needed * MANY_CONTEXTS + smaller;
  const found = known.get(name) ?? findFitting(set, needed, set.contexts[smaller - 1] ?? 0);
  known.set(name, found);
  return found.gauges.every(({ upstream }) => upstream.isDisabledByOperator) ? set : found;
}

function findFitting(set: CandidateSet, needed: number, tooSmall: number): CandidateSet {
  const fitting = subsetOf(
    set,
    (at) => ((set.lacks[at] ?? 0) & needed) === 0 && (set.candidates[at]?.model.context ?? 0) > tooSmall,
  );
  return fitting.candidates.length === 0 ? set : fitting;
}
