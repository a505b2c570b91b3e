import { fail } from '../../core/base/errors';
import type { Variant } from '../../core/catalog/price';
import type { Protocol } from '../../core/catalog/protocols';
import type { Extra, ToolUse } from '../../core/protocols/cost-factors';
import type { Addition, MemberRow, RequestTable, SharedObject } from '../../core/protocols/request-table';
import { memberRow, REQUEST_TABLES } from '../../core/protocols/request-tables';
import { isHarmless } from '../../core/protocols/translation-rules';
import { notPriced, notShared, notSupported } from './refusals';
import { hasDoubtfulKeys } from './short-texts';

/** How the gateway treats request members that it does not know. */
type UnknownMembers = 'forward' | 'byValue' | 'hold' | 'refuse';

export interface MemberSettings {
  readonly shared: ReadonlySet<SharedObject>;
  readonly unknownMembers: UnknownMembers;
  /** Members that the operator has declared free of charge at some upstream. */
  readonly freeMembers: ReadonlySet<string>;
}

/** How the members of one body affect its cost. */
export interface ClassifiedMembers {
  isUnbounded: boolean;
  furtherPasses: number;
  furtherAnswers: number;
  readonly heldMembers: string[];
  readonly smallMembers: string[];
  readonly unknownMembers: string[];
  /** The members that raise the hold by more than the tokens of their own text. */
  readonly adding: Partial<Record<Addition, string>>;
  asked: Variant | undefined;
  /** The objects at the vendor that the body names and that belong to one account; undefined if there are none. */
  named: NamedObject[] | undefined;
  /** The kinds of objects that the answer may create; undefined if there are none. */
  makes: SharedObject[] | undefined;
  /** The kinds of the objects named in the body that all accounts share. New ids of these kinds in the answer do not belong to the account of the call. */
  common: SharedObject[] | undefined;
  /** Tools and features that the vendor charges per use; undefined if there are none. */
  toolUses: ToolUse[] | undefined;
  /** Things that the vendor charges separately but does not count in uses; undefined if there are none. */
  extras: Extra[] | undefined;
  /** The first member that may make the vendor keep content, fetch some or pass it on; undefined if none does. */
  leaves: string | undefined;
}

/** An object named in the body that must belong to the account of the call. */
export interface NamedObject {
  readonly kind: SharedObject;
  readonly id: string;
  readonly param: string;
}

/**
 * Decides how each top-level member affects the cost of a call.
 * @param names the members
 * @param texts the JSON text of the short values
 * @param repeated the members that occur twice in the body
 * @throws MODEL_NOT_PRICED, NOT_SUPPORTED
 */
export function weighMembers(
  protocol: Protocol,
  names: Iterable<string>,
  texts: ReadonlyMap<string, string>,
  repeated: ReadonlySet<string> | undefined,
  settings: MemberSettings,
): ClassifiedMembers {
  const weighed: ClassifiedMembers = {
    isUnbounded: false,
    furtherPasses: 0,
    furtherAnswers: 0,
    heldMembers: [],
    smallMembers: [],
    unknownMembers: [],
    adding: {},
    asked: undefined,
    named: undefined,
    makes: undefined,
    common: undefined,
    toolUses: undefined,
    extras: undefined,
    leaves: undefined,
  };
  const table = REQUEST_TABLES[protocol];
  for (const name of names) {
    const row = memberRow(table, name);
    if (weighed.leaves === undefined && mayLeave(name, row, texts.get(name), settings)) weighed.leaves = name;
    if (row?.adds !== undefined) weighed.adding[row.adds] = name;
    if (row === undefined)
      weighUnknown(name, repeated?.has(name) === true ? undefined : texts.get(name), settings, weighed);
    else if (row.keeps !== undefined)
      weighKept(name, { ...row, keeps: row.keeps }, texts.get(name), table, settings, weighed);
    else if (row.class !== 'free' && row.class !== 'bounded') weighKnown(name, row, texts.get(name), settings, weighed);
  }
  const { keepsAnswers } = table;
  if (keepsAnswers !== undefined && texts.get(keepsAnswers.unless) !== 'false')
    weighed.makes = [...(weighed.makes ?? []), keepsAnswers.kind];
  return weighed;
}

/**
 * Returns whether a member may make the vendor keep content, fetch some or pass it on. A member that the gateway does not know may, unless
 * the operator knows it.
 */
function mayLeave(
  name: string,
  row: MemberRow | undefined,
  text: string | undefined,
  { freeMembers }: MemberSettings,
): boolean {
  if (row === undefined) return !freeMembers.has(name);
  if (row.leaves === undefined || text === 'null') return false;
  if (text === undefined) return true;
  const value: unknown = JSON.parse(text);
  return !isFree(row, value) && row.staysWith?.includes(value) !== true;
}

function weighKnown(
  name: string,
  rule: MemberRow,
  text: string | undefined,
  { shared }: MemberSettings,
  weighed: ClassifiedMembers,
): void {
  if (text === 'null') return;
  if (text !== undefined && isFree(rule, JSON.parse(text))) return;
  const asked = rule.asks && nameIn(text);
  if (rule.asks !== undefined && asked !== undefined) {
    weighed.asked = { ...weighed.asked, [rule.asks]: asked };
    return;
  }
  if (rule.meter !== undefined) {
    const { meter, furtherPasses = 0 } = rule;
    // Several members may describe the same search, so it counts once.
    if (weighed.toolUses?.some((tool) => tool.meter === meter)) return;
    const tool = { meter, pieces: 1, furtherPasses, limit: undefined, isReported: false, param: name };
    weighed.toolUses = [...(weighed.toolUses ?? []), tool];
    return;
  }
  if (rule.asks !== undefined) throw notPriced(name);
  if (rule.class === 'priced') {
    const needs = text === undefined || hasDoubtfulKeys(text) ? undefined : rule.needs?.(JSON.parse(text));
    weighed.extras = [...(weighed.extras ?? []), { name, param: name, ...needs }];
    weighed.furtherPasses += rule.furtherPasses ?? 0;
    return;
  }
  if (rule.class === 'refused') throw notSupported(name, `The gateway does not support "${name}": ${rule.why}.`);
  if (rule.names !== undefined && !shared.has(rule.names)) throw notShared(rule.names, name);
  weighed.isUnbounded = true;
  weighed.furtherPasses += rule.furtherPasses ?? 0;
  weighed.furtherAnswers += rule.furtherAnswers ?? 0;
}

function isFree(row: MemberRow, value: unknown): boolean {
  return row.isFree?.(value) === true || isHarmless(row, value);
}

/** Decides the treatment of a member whose value may name objects of one account, or may make the answer create such objects. */
function weighKept(
  name: string,
  rule: KeepingRule,
  text: string | undefined,
  { kept }: RequestTable,
  { shared }: MemberSettings,
  weighed: ClassifiedMembers,
): void {
  if (text === 'null') return;
  const keeping = text === undefined || hasDoubtfulKeys(text) ? undefined : rule.keeps(JSON.parse(text));
  if (keeping === undefined) throw notSupported(name, `"${name}" has a form that the gateway does not know.`);
  weighed.isUnbounded ||= keeping.isOutside;
  if (keeping.makes.length > 0) weighed.makes = [...(weighed.makes ?? []), ...keeping.makes];
  for (const { kind, id } of keeping.names) {
    if (shared.has(kind)) {
      weighed.isUnbounded = true;
      weighed.common = [...(weighed.common ?? []), kind];
    } else if (id === undefined) throw notShared(kind, name);
    else if (kept[kind] === undefined) throw fail('KEPT_OBJECT_NOT_FOUND', { param: name, message: NO_SUCH_KIND });
    else weighed.named = [...(weighed.named ?? []), { kind, id, param: name }];
  }
}

const NO_SUCH_KIND = 'No object with this id exists for calls of this protocol.';

type KeepingRule = MemberRow & Required<Pick<MemberRow, 'keeps'>>;

/** Returns the text of a value that is the name of a tier, speed or region; undefined for any other value. */
function nameIn(text: string | undefined): string | undefined {
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function weighUnknown(
  name: string,
  text: string | undefined,
  { unknownMembers, freeMembers }: MemberSettings,
  weighed: ClassifiedMembers,
): void {
  if (unknownMembers === 'refuse' && !freeMembers.has(name))
    throw notSupported(name, `The member "${name}" is unknown, and this gateway rejects unknown members. Remove it.`);
  weighed.unknownMembers.push(name);
  if (unknownMembers === 'forward') return;
  if (unknownMembers === 'hold' || !isSmall(text)) weighed.heldMembers.push(name);
  else weighed.smallMembers.push(name);
}

const SMALL_WORD = /^"[a-z_-]{0,32}"$/;

/** Returns whether a value is a switch, factor or word, and therefore too small to make a vendor read other content. `undefined` stands for a long value. */
function isSmall(text: string | undefined): boolean {
  if (text === undefined) return false;
  if (text === 'true' || text === 'false' || text === 'null' || SMALL_WORD.test(text)) return true;
  return text !== '' && !text.startsWith('"') && Number(text) <= 1;
}
