import { isDeepStrictEqual } from 'node:util';
import { asObject, type JsonObject } from '../base/json-values';
import { type Feature, NotTranslatable } from '../catalog/conversation';
import type { RequestTable, TranslatedRow, TranslationRule } from './request-table';

/** The translation rule of one member, item, content part or tool. */
interface NamedRule extends TranslationRule, Pick<TranslatedRow, 'harmless'> {
  /** The member's path from the top level; for an item, content part or tool its location and type, such as `tools[function]`. */
  readonly member: string;
}

/** Returns the path of a member of the object at `path`; the request itself has an empty path. */
export function memberPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

const UNKNOWN = 'is unknown, so it cannot be carried to another dialect';

/** The translation rules of a protocol's requests. A member without a rule is refused. A member that is `null` counts as absent. */
export class TranslationRules {
  /** For each conversation feature, the client's name of the member or part that expresses the feature. */
  readonly names: Readonly<Partial<Record<Feature, string>>>;
  readonly #rules = new Map<string, NamedRule>();

  constructor({ members, items = {}, parts, tools, nested }: RequestTable) {
    const names: Partial<Record<Feature, string>> = {};
    const add = (rows: Readonly<Record<string, TranslatedRow>>, memberOf: Naming, nameOf: Naming) => {
      for (const [name, { translation, harmless, features = [] }] of Object.entries(rows)) {
        if (translation === undefined) continue;
        const member = memberOf(name);
        this.#rules.set(member, { member, ...translation, ...(harmless !== undefined && { harmless }) });
        for (const feature of features) names[feature] ??= nameOf(name);
      }
    };
    add(members, itself, itself);
    add(items, (type) => `input[${type}]`, itself);
    add(parts, (type) => `content[${type}]`, itself);
    add(tools, (type) => `tools[${type}]`, itself);
    for (const [place, rows] of Object.entries(nested)) {
      const shown = place.replace(/\[\w+\]/, '[]');
      add(
        rows,
        (name) => memberPath(place, name),
        (name) => memberPath(shown, name),
      );
    }
    this.names = names;
  }

  get all(): readonly NamedRule[] {
    return [...this.#rules.values()];
  }

  /**
   * Returns the members of an object that have the rule `carried`. `place` is the object's name in the table of rules, `path` its name in
   * errors. `isEcho`: the client repeats an earlier answer, so unknown members are dropped.
   * @throws NotTranslatable for a refused or unknown member
   */
  carriedMembers(given: unknown, place = '', path = '', isEcho = false): JsonObject {
    const object = asObject(given);
    if (object === undefined) throw new NotTranslatable(path, 'must be an object');
    const carrying: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(object)) {
      if (value === null || value === undefined) continue;
      const rule = this.#rules.get(memberPath(place, name));
      if (rule === undefined && !isEcho) throw new NotTranslatable(memberPath(path, name), UNKNOWN);
      if (rule?.action === 'refused' && !isHarmless(rule, value))
        throw new NotTranslatable(memberPath(path, name), rule.why);
      if (rule?.action === 'carried') carrying[name] = value;
    }
    return carrying;
  }

  /** Returns the `type` of the object at `place`; `usual` if it has none. @throws NotTranslatable for a refused or unknown type */
  carriedType(given: unknown, place: string, path: string, usual?: string): string {
    const type = asObject(given)?.['type'] ?? usual;
    const rule = typeof type === 'string' ? this.#rules.get(`${place}[${type}]`) : undefined;
    if (typeof type === 'string' && rule?.action === 'carried') return type;
    throw new NotTranslatable(`${path}.type`, `is ${JSON.stringify(type)}, which ${rule?.why ?? UNKNOWN}`);
  }
}

type Naming = (name: string) => string;

const itself: Naming = (name) => name;

/** Returns whether a member with this value has no effect on the call. */
export function isHarmless({ harmless = [] }: Pick<TranslatedRow, 'harmless'>, value: unknown): boolean {
  return harmless.some((each) => isDeepStrictEqual(each, value));
}
