import { asObject, type JsonObject } from '../../../core/base/json-values';
import type { Random } from '../../support/random';
import type { Client } from './directions';

export interface Marked {
  readonly marked: JsonObject;
  readonly path: string;
  /** The text of the mark in JSON, wherever it arrives. */
  readonly mark: string;
  /** Whether a rule drops members at its place. */
  readonly mayBeDropped: boolean;
}

/** Matches the paths that rules drop, without the numbers of items. */
const DROPPED: Readonly<Record<Client, RegExp>> = {
  messages:
    /cache_control|^service_tier$|\.caller|^metadata|^thinking|output_config\.effort|media_type$|\.title$|tool_choice|^model$|^stream$|^top_k$|messages\.content\.(?:zz|tools\.zz)/,
  chat: /^user$|^seed|^logit_bias|reasoning_content|filename|^model$|^stream$|json_schema\.(?:name|strict)|^tool_choice$|function\.strict/,
  responses:
    /^safety_identifier|^metadata|^model$|^store$|^stream$|\.status$|annotations|\.detail$|filename|text\.format\.(?:name|strict)|tools\.strict|tool_choice/,
};

const MARK = 'zz-mark-zz';
/** A number that occurs nowhere else. */
const NUMBER = 718_281_828;

interface Place {
  readonly path: readonly (string | number)[];
  readonly value: unknown;
}

/** Puts an unknown member into an object of a request, or replaces one of its values. */
export function plant(random: Random, client: Client, body: JsonObject): Marked {
  const places = placesIn(body, []);
  const { path, value } = random.pick(places);
  const given = asObject(value);
  const isAdded = given !== undefined && (path.length === 0 || random.below(4) > 0);
  const at = isAdded ? [...path, 'zz'] : path;
  const planted = random.pick([MARK, NUMBER, [MARK], { [MARK]: MARK }]);
  const told = at.filter((each) => typeof each === 'string').join('.');
  const mark = planted === NUMBER ? String(NUMBER) : MARK;
  return {
    marked: withValue(body, at, planted) as JsonObject,
    path: told,
    mark,
    mayBeDropped: isDropped(client, body, at, told),
  };
}

function placesIn(value: unknown, path: readonly (string | number)[]): readonly Place[] {
  const own = [{ path, value }];
  if (Array.isArray(value)) return [...own, ...value.flatMap((each, at) => placesIn(each, [...path, at]))];
  const members = Object.entries(asObject(value) ?? {});
  return [...own, ...members.flatMap(([name, each]) => placesIn(each, [...path, name]))];
}

function withValue(value: unknown, [first, ...rest]: readonly (string | number)[], planted: unknown): unknown {
  if (first === undefined) return planted;
  if (Array.isArray(value)) return value.map((each, at) => (at === first ? withValue(each, rest, planted) : each));
  const object = asObject(value) ?? {};
  return { ...object, [first]: withValue(object[first], rest, planted) };
}

/**
 * Returns whether an unknown member is dropped: in the assistant's content it is, because clients repeat what they received. For Chat the members are
 * listed.
 */
function isDropped(client: Client, body: JsonObject, path: readonly (string | number)[], told: string): boolean {
  if (DROPPED[client].test(told)) return true;
  const [list, at] = path;
  const items = client !== 'chat' && (list === 'messages' || list === 'input') ? body[list] : [];
  const item = Array.isArray(items) && typeof at === 'number' ? asObject(items[at]) : undefined;
  const isSaid = item?.['role'] === 'assistant' || ECHOES.includes(item?.['type']);
  return isSaid && path.at(-1) === 'zz';
}

const ECHOES: readonly unknown[] = ['function_call', 'custom_tool_call'];
