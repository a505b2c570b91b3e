import type { Mirror } from '../../core/calls/call';
import type { Narrowing } from '../../core/calls/demanded';
import type { Candidate, Model } from '../../core/catalog/catalog';
import { normaliseModelName } from '../../core/catalog/model-names';
import type { Protocol } from '../../core/catalog/protocols';
import { takesVersion, versionOf } from '../../core/catalog/upstream';
import type { Gateway } from '../../core/gateway/gateway';
import type { JoiningCall, LiveRollouts, RolloutPart } from '../../core/rollouts/live-rollouts';
import type { Rollout } from '../../core/rollouts/rollout';
import { type CandidateSet, choose, openCandidateSet, type RankingInput, type RoutingChoice } from './choose';
import { allowedOf, fittingOf } from './narrow';

/** A model and the candidates that may serve its calls. */
export interface ModelRoute {
  readonly model: Model;
  readonly set: CandidateSet;
  /** The candidates before demands and the needs of the body narrow them to `set`. */
  readonly all: CandidateSet;
}

/** The route of one call. `variants`: the routes with and without a rollout's change, if a rollout applies to the call. */
export interface TakenRoute extends ModelRoute {
  readonly variants?: CallVariants;
}

interface CallVariants {
  readonly rollout: Rollout;
  readonly part: RolloutPart;
  /** The route without the rollout's change (`control`), and the route with it (`treatment`). */
  readonly control: ModelRoute;
  readonly treatment: ModelRoute;
}

const OTHER_VERSION = '';

type RouteOf = (narrowing: Narrowing) => ModelRoute;

/** The two variants of a rollout for calls of one model. */
interface RolloutVariants {
  readonly rollout: Rollout;
  readonly concerns: (modelRequested: string) => boolean;
  readonly control: RouteOf;
  readonly treatment: RouteOf;
}

interface Variant {
  readonly model: Model;
  readonly without?: readonly string[];
  readonly first?: readonly string[] | undefined;
}

/** Returns a function that decides whether a pipeline may call a candidate; `*` allows all upstreams. */
export function mayAsk(upstreams: readonly string[]): (candidate: Pick<Candidate, 'upstream'>) => boolean {
  return upstreams.includes('*') ? () => true : ({ upstream }) => upstreams.includes(upstream.name);
}

/** Returns the function that finds the route of each call. Everything that does not depend on the call is prepared once per configuration. */
export function openRoutes(
  gateway: Gateway,
  upstreams: readonly string[],
): (call: JoiningCall, asked: Model, narrowing: Narrowing) => TakenRoute {
  const { catalog, rollouts, health } = gateway;
  const isNamed = mayAsk(upstreams);
  const declared = new Set(catalog.upstreams.flatMap(({ versions }) => [...(versions ?? [])]));
  const open = (
    { model, without = [], first }: Variant,
    protocol: Protocol,
    version: string | undefined,
    translates: boolean,
  ): ModelRoute => {
    const translating = translates ? catalog.translating(model, protocol) : [];
    const all = [...catalog.candidates(model, protocol), ...translating];
    const candidates = all
      .filter(isNamed)
      .filter(
        ({ upstream, dialect }) =>
          !without.includes(upstream.name) && (dialect !== undefined || takesVersion(upstream, version)),
      );
    const set = openCandidateSet(candidates, health, first);
    return { model, set, all: set };
  };
  const routesOf = (variant: Variant): RouteOf => {
    const known = new Map<string, ModelRoute>();
    return (narrowing) => {
      const { request } = narrowing;
      const { protocol } = request;
      const version = declared.size === 0 ? undefined : versionOf(request);
      // All protocol versions that no upstream declares share one route. Otherwise clients could fill the memory by naming ever new versions.
      const counted = version === undefined || declared.has(version) ? version : OTHER_VERSION;
      // Only the main operation of a protocol can be translated to another protocol.
      const { operation = '' } = request;
      const name = counted === undefined ? protocol + operation : `${protocol}${operation} ${counted}`;
      const route = known.get(name) ?? open(variant, protocol, counted, operation === '');
      known.set(name, route);
      const { all } = route;
      const set = fittingOf(allowedOf(all, narrowing, catalog), request);
      return set === all ? route : { model: route.model, set, all };
    };
  };
  const variantsOf = allVariants(gateway, routesOf);
  const plain = new Map<Model, RouteOf>();
  const plainRoute = (model: Model, narrowing: Narrowing): ModelRoute => {
    const known = plain.get(model) ?? routesOf({ model });
    plain.set(model, known);
    return known(narrowing);
  };

  return (call, asked, narrowing) => {
    const { request } = narrowing;
    const variants = variantsOf.get(asked)?.find(({ concerns }) => concerns(request.modelRequested));
    if (variants === undefined) return plainRoute(asked, narrowing);
    const control = variants.control(narrowing);
    const treatment = variants.treatment(narrowing);
    // The rollout does not compare a call that the treatment cannot serve, or may not because of the call's demands.
    if (isSame(control.set, treatment.set)) return control;
    const { rollout } = variants;
    const part = rollouts.join(rollout, call);
    if (part === undefined) return control;
    return { ...(part.group === 'treatment' ? treatment : control), variants: { rollout, part, control, treatment } };
  };
}

interface RankedRoute {
  readonly route: ModelRoute;
  readonly input: RankingInput;
  readonly ordered: RoutingChoice;
}

/** Ranks the candidates. If a treatment call's upstream may not be tried now, others serve the call, and the rollout counts it as failed. */
export function rankRoute(taken: TakenRoute, inputOf: (route: ModelRoute) => RankingInput): RankedRoute {
  const input = inputOf(taken);
  const ordered = choose(taken.set, input);
  const { variants } = taken;
  if (variants?.part.group !== 'treatment' || isAsked(taken.set, ordered)) return { route: taken, input, ordered };
  variants.part.isMissed = true;
  if (ordered.order.length > 0) return { route: taken, input, ordered };
  const controlInput = inputOf(variants.control);
  return { route: variants.control, input: controlInput, ordered: choose(variants.control.set, controlInput) };
}

function isAsked({ candidates, first }: CandidateSet, { order: [foremost] }: RoutingChoice): boolean {
  if (foremost === undefined) return false;
  return first === undefined || first.has((candidates[foremost] as Candidate).upstream.name);
}

/** Returns the first candidate of the treatment group if this call is mirrored to it; undefined otherwise. */
export function mirrorOf(
  { rollout, part, treatment }: CallVariants,
  rollouts: LiveRollouts,
  inputOf: (route: ModelRoute) => RankingInput,
): Mirror | undefined {
  if (!rollouts.isMirrored(rollout, part)) return undefined;
  const { set } = treatment;
  const choice = choose(set, inputOf(treatment));
  // If the treatment's upstream is ejected or disabled, the call is not mirrored.
  if (!isAsked(set, choice)) return undefined;
  return { candidate: set.candidates[choice.order[0] as number] as Candidate, part };
}

/** Returns whether the rollout's change makes no difference: the candidates stay the same, or none of those that it adds may serve the call. */
function isSame({ candidates: before }: CandidateSet, { candidates: after, first }: CandidateSet): boolean {
  if (after.length === 0) return true;
  if (first !== undefined && !after.some(({ upstream }) => first.has(upstream.name))) return true;
  return before.length === after.length && before.every((each, index) => each === after[index]);
}

function allVariants(
  { configuration, catalog }: Gateway,
  routesOf: (variant: Variant) => RouteOf,
): ReadonlyMap<Model, readonly RolloutVariants[]> {
  const found = new Map<Model, RolloutVariants[]>();
  const find = (name: string) => {
    const lookup = catalog.find(name);
    if (!('found' in lookup)) throw new Error(`a rollout names the model "${name}", which does not exist`);
    return lookup.found;
  };
  const add = (rollout: Rollout, concerns: RolloutVariants['concerns'], control: Variant, treatment: Variant) => {
    const variants = { rollout, concerns, control: routesOf(control), treatment: routesOf(treatment) };
    found.set(control.model, [...(found.get(control.model) ?? []), variants]);
  };
  for (const rollout of configuration.rollouts) {
    const { change } = rollout;
    if (change.kind === 'upstreams') {
      const model = find(change.model);
      const { drop: without, add: added } = change;
      const first = change.first && added.length > 0 ? added : undefined;
      add(rollout, () => true, { model, without: added }, { model, without, first });
    } else if (change.kind === 'version') {
      const model = find(change.alias);
      add(rollout, namedBy(change.alias, model), { model }, { model: find(change.model) });
    }
  }
  return found;
}

/** Returns a function that decides by the requested name whether a rollout of an alias applies. It never applies to the model's other names. */
function namedBy(alias: string, model: Model): RolloutVariants['concerns'] {
  const others = new Set([model.name, ...model.aliases].filter((each) => each !== alias));
  const normalised = normaliseModelName(alias);
  return (requested) => requested === alias || (!others.has(requested) && normaliseModelName(requested) === normalised);
}
