import type { Variant } from '../../core/catalog/price';
import type { Protocol } from '../../core/catalog/upstream';
import type { MemberRule, SharedObject } from '../../core/dialects/dialect';
import { DIALECTS, memberRule } from '../../core/dialects/dialects';
import { notPriced, notShared, notSupported } from './objections';

/** What becomes of members that no table has. */
export type UnknownMembers = 'forward' | 'byValue' | 'hold' | 'refuse';

export interface MemberSettings {
  readonly shared: ReadonlySet<SharedObject>;
  readonly unknownMembers: UnknownMembers;
  /** Members that some upstream calls free. */
  readonly freeMembers: ReadonlySet<string>;
}

/** What the members of one body mean for its cost. */
export interface WeighedMembers {
  isUnbounded: boolean;
  furtherPasses: number;
  furtherAnswers: number;
  readonly heldMembers: string[];
  readonly unknownMembers: string[];
  asked: Variant | undefined;
}

/**
 * Decides what each top-level member means for the cost of a call.
 * @param names the members, and whether each stands there twice
 * @param texts the JSON text of the short values
 * @throws MODEL_NOT_PRICED, NOT_SUPPORTED
 */
export function weighMembers(
  protocol: Protocol,
  names: Iterable<string>,
  texts: ReadonlyMap<string, string>,
  repeated: ReadonlySet<string>,
  settings: MemberSettings,
): WeighedMembers {
  const weighed = {
    isUnbounded: false,
    furtherPasses: 0,
    furtherAnswers: 0,
    heldMembers: [],
    unknownMembers: [],
    asked: undefined,
  };
  for (const name of names) {
    const rule = memberRule(DIALECTS[protocol], name);
    if (rule === undefined) weighUnknown(name, repeated.has(name) ? undefined : texts.get(name), settings, weighed);
    else if (rule.class !== 'free' && rule.class !== 'bounded')
      weighKnown(name, rule, texts.get(name), settings, weighed);
  }
  return weighed;
}

function weighKnown(
  name: string,
  rule: MemberRule,
  text: string | undefined,
  { shared }: MemberSettings,
  weighed: WeighedMembers,
): void {
  if (text === 'null') return;
  if (text !== undefined && rule.isFree?.(JSON.parse(text)) === true) return;
  const asked = rule.asks && nameIn(text);
  if (rule.asks !== undefined && asked !== undefined) {
    weighed.asked = { ...weighed.asked, [rule.asks]: asked };
    return;
  }
  if (rule.class === 'priced') throw notPriced(name);
  if (rule.class === 'refused') throw notSupported(name, `"${name}" is not supported here: ${rule.why}.`);
  if (rule.names !== undefined && !shared.has(rule.names)) throw notShared(rule.names, name);
  weighed.isUnbounded = true;
  weighed.furtherPasses += rule.furtherPasses ?? 0;
  weighed.furtherAnswers += rule.furtherAnswers ?? 0;
}

/** The name of a tier, speed or region; undefined for anything else. */
function nameIn(text: string | undefined): string | undefined {
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function weighUnknown(
  name: string,
  text: string | undefined,
  { unknownMembers, freeMembers }: MemberSettings,
  weighed: WeighedMembers,
): void {
  if (unknownMembers === 'refuse' && !freeMembers.has(name))
    throw notSupported(name, `"${name}" is not known here, and this gateway refuses unknown members.`);
  weighed.unknownMembers.push(name);
  const isHeld = unknownMembers === 'hold' || (unknownMembers === 'byValue' && !isSmall(text));
  if (isHeld) weighed.heldMembers.push(name);
}

const SMALL_WORD = /^"[a-z_-]{0,32}"$/;

/** A switch, a factor or a word: too small to make a vendor read anything else. `undefined`: longer than what is read. */
function isSmall(text: string | undefined): boolean {
  if (text === undefined) return false;
  if (text === 'true' || text === 'false' || text === 'null' || SMALL_WORD.test(text)) return true;
  return text !== '' && !text.startsWith('"') && Number(text) <= 1;
}
