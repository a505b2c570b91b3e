import { isDeepStrictEqual } from 'node:util';
import { NotTranslatable } from '../catalog/conversation';
import { asObject, type JsonObject } from '../json-values';

/** The fate of one member, item, content part or tool when its request is carried to another dialect. */
export interface Rule {
  /** The member's name, with its place if that is not the top level; or the type of an item, content part or tool. */
  readonly member: string;
  /** `carried`: the upstream gets it, unless its dialect has no place for it; then the dialect's writer refuses or drops it. */
  readonly fate: 'carried' | 'dropped' | 'refused';
  readonly why: string;
  /** The harmless values of a refused member, which are dropped instead. */
  readonly unless?: readonly unknown[];
}

export const carried = (why: string, ...members: readonly string[]) => rules('carried', why, members);
export const dropped = (why: string, ...members: readonly string[]) => rules('dropped', why, members);
export const refused = (why: string, ...members: readonly string[]) => rules('refused', why, members);

function rules(fate: Rule['fate'], why: string, members: readonly string[]): readonly Rule[] {
  return members.map((member) => ({ member, fate, why }));
}

export function refusedUnless(member: string, unless: readonly unknown[], why: string): Rule {
  return { member, fate: 'refused', why, unless };
}

/** Returns the names of some members of one place. */
export function inside(place: string, ...names: readonly string[]): readonly string[] {
  return names.map((name) => `${place}.${name}`);
}

/** Returns the path of a member of the object at `path`; the request itself has an empty path. */
export function pathOf(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

const UNKNOWN = 'is unknown, so it cannot be carried to another dialect';

/** The rules of a dialect's requests. Anything without a rule is refused; `null` always means that a member is absent. */
export class Rules {
  readonly #rules: ReadonlyMap<string, Rule>;

  constructor(readonly all: readonly Rule[]) {
    this.#rules = new Map(all.map((rule) => [rule.member, rule]));
  }

  /** Returns the rule of a member; undefined for an unknown one. */
  of(member: string): Rule | undefined {
    return this.#rules.get(member);
  }

  /**
   * Returns the carried members of an object. `place` is the object's name in the rules, `path` its name in errors. With `isEcho`
   * the client repeats an earlier answer, whose unknown members are dropped.
   * @throws NotTranslatable for a refused or unknown member
   */
  carriedMembers(given: unknown, place = '', path = '', isEcho = false): JsonObject {
    const object = asObject(given);
    if (object === undefined) throw new NotTranslatable(path, 'must be an object');
    const carrying: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(object)) {
      if (value === null || value === undefined) continue;
      const rule = this.of(pathOf(place, name));
      if (rule === undefined && !isEcho) throw new NotTranslatable(pathOf(path, name), UNKNOWN);
      if (rule?.fate === 'refused' && !rule.unless?.some((free) => isDeepStrictEqual(free, value)))
        throw new NotTranslatable(pathOf(path, name), rule.why);
      if (rule?.fate === 'carried') carrying[name] = value;
    }
    return carrying;
  }

  /** Returns the `type` of the object in a place. @throws NotTranslatable for a refused or unknown one */
  carriedType(given: unknown, place: string, path: string, usual?: string): string {
    const type = asObject(given)?.['type'] ?? usual;
    const rule = typeof type === 'string' ? this.of(`${place}[${type}]`) : undefined;
    if (typeof type === 'string' && rule?.fate === 'carried') return type;
    throw new NotTranslatable(`${path}.type`, `is ${JSON.stringify(type)}, which ${rule?.why ?? UNKNOWN}`);
  }
}
