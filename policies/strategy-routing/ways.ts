import type { CallKey } from '../../core/accounts/identify';
import type { Mirror, ModelRequest } from '../../core/calls/call';
import type { Candidate, Model } from '../../core/catalog/catalog';
import { normaliseModelName } from '../../core/catalog/model-names';
import type { Protocol } from '../../core/catalog/protocols';
import { takesVersion, versionOf } from '../../core/catalog/versions';
import type { Gateway } from '../../core/gateway/gateway';
import type { JoiningCall, LiveRollouts, RolloutPart } from '../../core/rollouts/live-rollouts';
import type { Rollout } from '../../core/rollouts/rollout';
import { type Choice, choose, type Field, openField, type Wish } from './choose';

/** Where calls of a model may go. */
export interface Way {
  readonly model: Model;
  readonly field: Field;
}

/** The way of one call; for one that a rollout concerns both ways, of which it has taken one. */
export interface TakenWay extends Way {
  readonly fork?: TakenFork;
}

interface TakenFork {
  readonly rollout: Rollout;
  readonly part: RolloutPart;
  /** As before, and with the change. */
  readonly control: Way;
  readonly candidate: Way;
}

export type AskingCall = JoiningCall & { readonly key: CallKey; readonly request: ModelRequest };

const OTHER_VERSION = '';

type WayOf = (request: Pick<ModelRequest, 'protocol' | 'headers' | 'operation'>) => Way;

/** A rollout as far as it concerns calls of one model. */
interface Fork {
  readonly rollout: Rollout;
  readonly concerns: (modelRequested: string) => boolean;
  readonly control: WayOf;
  readonly candidate: WayOf;
}

/** What is otherwise for one of the groups. */
interface Otherwise {
  readonly model: Model;
  readonly without?: readonly string[];
  readonly first?: readonly string[] | undefined;
}

/** Returns which candidates a pipeline may ask; `*` stands for all. */
export function mayAsk(upstreams: readonly string[]): (candidate: Candidate) => boolean {
  return upstreams.includes('*') ? () => true : ({ upstream }) => upstreams.includes(upstream.name);
}

/** Finds the way of each call; what does not depend on the call is found once per configuration. */
export function openWays(gateway: Gateway, upstreams: readonly string[]): (call: AskingCall, asked: Model) => TakenWay {
  const { catalog, rollouts, health } = gateway;
  const isNamed = mayAsk(upstreams);
  const declared = new Set(catalog.upstreams.flatMap(({ versions }) => [...(versions ?? [])]));
  const open = (
    { model, without = [], first }: Otherwise,
    protocol: Protocol,
    version: string | undefined,
    translates: boolean,
  ): Way => {
    const translating = translates ? catalog.translating(model, protocol) : [];
    const all = [...catalog.candidates(model, protocol), ...translating];
    const candidates = all
      .filter(isNamed)
      .filter(
        ({ upstream, dialect }) =>
          !without.includes(upstream.name) && (dialect !== undefined || takesVersion(upstream, version)),
      );
    return { model, field: openField(candidates, health, first) };
  };
  const waysOf = (otherwise: Otherwise): WayOf => {
    const known = new Map<string, Way>();
    return (request) => {
      const { protocol } = request;
      const version = declared.size === 0 ? undefined : versionOf(request);
      // Of versions that no upstream declares one stands for all, so that clients cannot fill the memory.
      const told = version === undefined || declared.has(version) ? version : OTHER_VERSION;
      // Other operations than the protocol's own have no counterpart elsewhere.
      const { operation = '' } = request;
      const name = told === undefined ? protocol + operation : `${protocol}${operation} ${told}`;
      const way = known.get(name) ?? open(otherwise, protocol, told, operation === '');
      known.set(name, way);
      return way;
    };
  };
  const forks = forksOf(gateway, waysOf);
  const plain = new Map<Model, WayOf>();
  const plainWay = (model: Model, request: ModelRequest): Way => {
    const known = plain.get(model) ?? waysOf({ model });
    plain.set(model, known);
    return known(request);
  };

  return (call, asked) => {
    const { request } = call;
    const fork = forks.get(asked)?.find(({ concerns }) => concerns(request.modelRequested));
    if (fork === undefined) return plainWay(asked, request);
    const control = fork.control(request);
    const candidate = fork.candidate(request);
    // A call that the candidate cannot serve is not one to compare it by.
    if (isSame(control.field, candidate.field)) return control;
    const { rollout } = fork;
    const part = rollouts.join(rollout, call);
    if (part === undefined) return control;
    return { ...(part.arm === 'candidate' ? candidate : control), fork: { rollout, part, control, candidate } };
  };
}

interface ChosenWay {
  readonly way: Way;
  readonly wish: Wish;
  readonly ordered: Choice;
}

/** Puts the candidates into order. A call whose candidate may not be asked now is served all the same, and is a failure of it. */
export function chooseWay(taken: TakenWay, wishOf: (way: Way) => Wish): ChosenWay {
  const wish = wishOf(taken);
  const ordered = choose(taken.field, wish);
  const { fork } = taken;
  if (fork?.part.arm !== 'candidate' || isAsked(taken.field, ordered)) return { way: taken, wish, ordered };
  fork.part.isMissed = true;
  if (ordered.order.length > 0) return { way: taken, wish, ordered };
  const wishAsBefore = wishOf(fork.control);
  return { way: fork.control, wish: wishAsBefore, ordered: choose(fork.control.field, wishAsBefore) };
}

function isAsked({ candidates, first }: Field, { order: [foremost] }: Choice): boolean {
  if (foremost === undefined) return false;
  return first === undefined || first.has((candidates[foremost] as Candidate).upstream.name);
}

/** Who is sent the call too, without answering: whom the candidate's group would ask first. */
export function mirrorOf(
  { rollout, part, candidate: { model, field } }: TakenFork,
  rollouts: LiveRollouts,
  wishOf: (way: Way) => Wish,
): Mirror | undefined {
  if (!rollouts.isMirrored(rollout, part)) return undefined;
  const choice = choose(field, wishOf({ model, field }));
  // What is left out for its failures or by an operator is not asked here either, nor is anybody in its place.
  if (!isAsked(field, choice)) return undefined;
  return { candidate: field.candidates[choice.order[0] as number] as Candidate, part };
}

/** Nothing is otherwise with the change, or it leaves nobody to ask. */
function isSame({ candidates: before }: Field, { candidates: after }: Field): boolean {
  if (after.length === 0) return true;
  return before.length === after.length && before.every((each, index) => each === after[index]);
}

function forksOf(
  { configuration, catalog }: Gateway,
  waysOf: (otherwise: Otherwise) => WayOf,
): ReadonlyMap<Model, readonly Fork[]> {
  const forks = new Map<Model, Fork[]>();
  const find = (name: string) => {
    const lookup = catalog.find(name);
    if (!('found' in lookup)) throw new Error(`a rollout names "${name}", which is no model`);
    return lookup.found;
  };
  const add = (rollout: Rollout, concerns: Fork['concerns'], control: Otherwise, candidate: Otherwise) => {
    const fork = { rollout, concerns, control: waysOf(control), candidate: waysOf(candidate) };
    forks.set(control.model, [...(forks.get(control.model) ?? []), fork]);
  };
  for (const rollout of configuration.rollouts) {
    const { change } = rollout;
    if (change.is === 'upstreams') {
      const model = find(change.model);
      const { drop: without, add: added } = change;
      const first = change.first && added.length > 0 ? added : undefined;
      add(rollout, () => true, { model, without: added }, { model, without, first });
    } else if (change.is === 'version') {
      const model = find(change.alias);
      add(rollout, namedBy(change.alias, model), { model }, { model: find(change.model) });
    }
  }
  return forks;
}

/** Who asks for a model by another of its names than this one means that very model. */
function namedBy(alias: string, model: Model): Fork['concerns'] {
  const others = new Set([model.name, ...model.aliases].filter((each) => each !== alias));
  const normalised = normaliseModelName(alias);
  return (requested) => requested === alias || (!others.has(requested) && normaliseModelName(requested) === normalised);
}
