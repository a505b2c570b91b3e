import { fail, type GatewayError, invalidParam, shorten } from '../../core/base/errors';
import { PROTOCOLS, type Protocol } from '../../core/catalog/protocols';
import { QUOTE } from '../../core/http/json-bytes';
import { TopLevelMembers } from '../../core/http/json-members';
import type { JsonObserver, JsonToken } from '../../core/http/json-scanner';
import { type JsonWord, knownWord } from '../../core/http/json-words';
import type { Extra, ToolLimit, ToolUse } from '../../core/protocols/cost-factors';
import { MAX_TOOL_USES } from '../../core/protocols/request-rows';
import type { FormedTool, SharedObject, ToolRule } from '../../core/protocols/request-table';
import { memberRow, toolRow } from '../../core/protocols/request-tables';
import { type AddressGate, FOREIGN_PROBLEM, isForeign } from './address-gate';
import { InputReader } from './input-reader';
import { isUnmetered, type Objection, PartReader, type PartRules, partRules } from './part-reader';
import { notShared, notSupported, ONCE } from './refusals';
import type { AcceptedRoles } from './roles';

const ROLE = knownWord('role');
const CONTENT = knownWord('content');
const TYPE = knownWord('type');
const AUDIO = knownWord('audio');
const MAX_USES = knownWord('max_uses');
const CACHE_CONTROL = knownWord('cache_control');
/** The value of `ttl` that requests caching for an hour. If the same text occurs elsewhere in the body, the hold is only larger than necessary. */
const HOUR = knownWord('1h');

/** The top-level member that is being read: the conversation (under any name), the tools, the input of an embeddings call, or another one. */
const OTHER = 0;
const CONVERSATION = 1;
const TOOLS = 2;
const INPUT = 3;
type Section = typeof OTHER | typeof CONVERSATION | typeof TOOLS | typeof INPUT;

/** How many tools of one request may run at the vendor or have a text that must be checked. Real requests have a few. */
const MAX_VENDOR_TOOLS = 1_000;

/** How many items a conversation may reference, because each needs a look-up. Real conversations reference far fewer. */
const MAX_REFERENCES = 2_000;

/** The depth of an item of the conversation or of `tools`, and the depth of the list around it. */
const ITEM = 3;
const LIST = 2;
/** The depth of a content part inside another part, such as the content of a tool's result. */
const DEEPEST_ENTRY = 7;
/** A depth greater than any that the gateway reads in JSON. */
const NOWHERE = 1_000;

/** The rules for reading a call's body, which are the same for all bodies of one protocol. */
export interface CallRules extends PartRules {
  readonly protocol: Protocol;
  readonly roles: AcceptedRoles;
  readonly conversation: string;
  /** Whether each item of the conversation is itself a content part. Such items need not be messages and may have no role. */
  readonly itemsAreParts: boolean;
}

export function callRules(
  protocol: Protocol,
  roles: AcceptedRoles,
  shared: ReadonlySet<SharedObject>,
  gate: AddressGate,
): CallRules {
  const { conversation } = PROTOCOLS[protocol];
  const parts = partRules(protocol, shared, gate);
  return { ...parts, protocol, roles, conversation, itemsAreParts: parts.table.items !== undefined };
}

/**
 * Reads a call's body while it arrives: records its members, checks the conversation and `tools`, and reads the content parts. It stores
 * errors instead of throwing them, because the body may turn out not to be JSON at all.
 */
export class CallObserver implements JsonObserver {
  readonly members = new TopLevelMembers(ONCE);
  fault: GatewayError | undefined;
  /** The reader of the `input` of an embeddings call, which has neither conversation nor tools. */
  readonly inputs: InputReader | undefined;

  readonly parts: PartReader;
  /** Members that occur twice in the body; undefined if there are none. JSON parsers differ in which value they use. */
  repeated: Set<string> | undefined;
  /** How many entries the lists outside of content parts have: turns, calls, instructions, tools and stop sequences together. */
  entries = 0;
  /** How many times the tools in the body increase the input by the model's `toolOverheadTokens`. */
  toolOverheads = 0;
  /** How many more times the vendor may run the model because of tools without a price of their own. */
  furtherPasses = 0;
  /** Tools that run at the vendor, as values of `ToolUse`; undefined if there are none. */
  toolUses: ToolUse[] | undefined;
  /** Things that the vendor charges separately but does not count in uses, by name; undefined if there are none. */
  extras: Map<string, Extra> | undefined;
  /** Tools that could name an object kept by the vendor. */
  readonly openTools: ItemPosition[] = [];
  /** Tools whose cost rule is decided when the whole body has arrived. */
  readonly formedTools: FormedPlace[] = [];
  /** Items of the conversation that reference an item of an earlier answer to the same account. */
  readonly references: ItemPosition[] = [];
  /** The first part or tool that may make the vendor keep content, fetch some or pass it on; undefined if none does. */
  leaves: string | undefined;
  /** The kinds of objects that the vendor's tools may create; undefined if there are none. */
  makes: SharedObject[] | undefined;

  /** Whether the body requests storage in the vendor's prompt cache (`namesCache`), and whether it requests storage for an hour (`namesHour`). */
  namesCache = false;
  namesHour = false;

  /** Whether the gateway does not know the current top-level member, so that its value may contain anything. */
  #isUnknown = false;
  /** One bit per depth. `#lists`: whether the container is a list. `#inLists`: whether the container is an entry of a list. */
  #lists = 0;
  #inLists = 0;
  #section: Section = OTHER;
  /** The depth from which on the reader looks for content parts in the current member. */
  #partsFrom = NOWHERE;
  #item = -1;
  /** The current key in the current item; undefined if it is too long. */
  #key: JsonWord | undefined;
  #hasRole = false;
  #itemStart = 0;
  /** The type of the current tool, and its limit. A tool without a type runs at the client. */
  #toolType: string | undefined;
  #maxUses: MaxUses | undefined;
  #vendorTools = 0;

  readonly #rules: CallRules;

  constructor(rules: CallRules) {
    this.#rules = rules;
    this.inputs = rules.protocol === 'embeddings' ? new InputReader() : undefined;
    this.parts = new PartReader(rules);
  }

  get protocol(): Protocol {
    return this.#rules.protocol;
  }

  open(depth: number, isObject: boolean, token: JsonToken): void {
    if (depth <= LIST) this.members.open(depth, isObject, token);
    if (depth <= DEEPEST_ENTRY) this.#countEntry(depth, isObject);
    if (this.#section === OTHER) return;
    if (this.#section === INPUT) {
      this.inputs?.open(depth, isObject, token.start);
      return;
    }
    if (depth >= this.#partsFrom) this.parts.open(depth, isObject, token.start);
    if (depth === ITEM) this.#beginItem(isObject, token.start);
    else if (depth === ITEM + 1 && this.#isMaxUses) this.#invalid('.max_uses', MAX_USES_EXPECTED);
    else if (depth === ITEM + 1 && this.#isValueOf(ROLE)) this.#badRole();
    else if (depth === ITEM + 1 && this.#isValueOf(AUDIO)) this.#earlierAudio();
  }

  close(depth: number, token: JsonToken): void {
    if (depth <= LIST) this.members.close(depth, token);
    if (this.#section === INPUT) this.inputs?.close(depth, token.end);
    if (depth === LIST) this.#enter(OTHER);
    if (this.#section === OTHER || this.#section === INPUT) return;
    if (depth >= this.#partsFrom) this.parts.close(depth, token.end);
    if (depth === ITEM) this.#endItem(token.end);
  }

  key(depth: number, token: JsonToken): void {
    if (token.is(CACHE_CONTROL)) this.namesCache = true;
    if (depth === 1) {
      this.members.key(depth, token);
      const { name, places } = this.members;
      if (places.has(name)) this.#repeats(name);
      this.#enterSection(name);
      this.#isUnknown = memberRow(this.#rules.table, name) === undefined;
    } else if (this.#section === CONVERSATION || this.#section === TOOLS) {
      if (depth === ITEM) this.#beginMember(token);
      if (depth >= this.#partsFrom) this.parts.key(depth, token);
    }
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (firstByte === QUOTE && token.is(HOUR)) this.namesHour = true;
    if (depth === 1) this.members.scalar(depth, firstByte, token);
    if (this.#isUnknown && firstByte === QUOTE && isForeign(token))
      this.fault ??= invalidParam(shorten(this.members.name, MAX_PARAM_LENGTH), FOREIGN_PROBLEM);
    if (depth === LIST && this.#isList(LIST)) this.entries += 1;
    if (this.#section === OTHER) return;
    if (this.#section === INPUT) this.inputs?.scalar(depth, firstByte, token);
    else if (depth === LIST) this.#beginItem(false, token.start);
    else if (depth === ITEM) this.#checkItemValue(firstByte, token);
    if (depth >= this.#partsFrom) this.parts.scalar(depth, firstByte, token);
  }

  /** Counts the objects in the lists of the body, and in the lists of these objects. `PartReader` counts the objects in content parts. */
  #countEntry(depth: number, isObject: boolean): void {
    const isInList = this.#isList(depth - 1) && (depth === ITEM || ((this.#inLists >> (depth - 2)) & 1) === 1);
    const isEntry = isObject && isInList;
    this.#lists = withBit(this.#lists, depth, !isObject);
    this.#inLists = withBit(this.#inLists, depth, isEntry);
    if (isEntry && depth < this.#partsFrom) this.entries += 1;
  }

  #isList(depth: number): boolean {
    return ((this.#lists >> depth) & 1) === 1;
  }

  #repeats(name: string): void {
    this.repeated ??= new Set();
    this.repeated.add(name);
  }

  #enterSection(name: string): void {
    if (this.inputs !== undefined) this.#enter(name === 'input' ? INPUT : OTHER);
    else this.#enter(name === this.#rules.conversation ? CONVERSATION : name === 'tools' ? TOOLS : OTHER);
    this.#item = -1;
  }

  #enter(section: Section): void {
    this.#section = section;
    this.#partsFrom = section === CONVERSATION && this.#rules.itemsAreParts ? ITEM : NOWHERE;
  }

  #isValueOf(key: JsonWord): boolean {
    return this.#section === CONVERSATION && this.#key === key;
  }

  #enterKey(key: JsonWord | undefined): void {
    this.#key = key;
    if (this.#section === CONVERSATION && !this.#rules.itemsAreParts)
      this.#partsFrom = key === CONTENT ? ITEM + 1 : NOWHERE;
  }

  /** Records the key of a member. Rejects `Max_Uses`, because a parser that ignores case would take it for a limit that the gateway did not see. */
  #beginMember(token: JsonToken): void {
    const word = token.word();
    this.#enterKey(word);
    if (this.#section !== TOOLS || word === undefined || word === MAX_USES) return;
    if (word.text.length === MAX_USES.text.length && word.text.toLowerCase() === MAX_USES.text)
      this.#invalid('', 'did you mean "max_uses"?');
  }

  get #isMaxUses(): boolean {
    return this.#section === TOOLS && this.#key === MAX_USES;
  }

  #beginItem(isObject: boolean, start: number): void {
    this.#item += 1;
    this.#enterKey(undefined);
    this.#hasRole = false;
    this.#itemStart = start;
    this.#toolType = undefined;
    this.#maxUses = undefined;
    if (this.#section === TOOLS && this.#item === 0) this.toolOverheads += 1;
    if (!isObject && this.#section === CONVERSATION) this.#invalid('', 'expected an object');
  }

  #endItem(end: number): void {
    if (this.#section === TOOLS) {
      if (this.#toolType !== undefined) this.#endTool(this.#toolType, end);
      return;
    }
    this.#endParts();
    if (this.parts.takeLeaving()) this.leaves ??= this.#itemParam;
    if (!this.#rules.itemsAreParts) this.parts.endMessage(this.#itemStart, end);
    if (!this.#hasRole && !this.#rules.itemsAreParts) this.#invalid('.role', 'is missing');
    const { objection, isReference, refused } = this.parts;
    if (isReference) this.#reference(end);
    if (refused !== undefined) this.fault ??= invalidParam(this.#itemParam + refused.path, refused.problem);
    if (objection === undefined) return;
    this.fault ??= objectionTo(objection, this.#itemParam);
  }

  #reference(to: number): void {
    if (this.references.length === MAX_REFERENCES)
      this.#invalid('', `names an item, and ${MAX_REFERENCES} before it do; expected no more`);
    else this.references.push({ from: this.#itemStart, to, index: this.#item });
  }

  #checkItemValue(firstByte: number, token: JsonToken): void {
    if (this.#section === CONVERSATION && this.#key === ROLE) {
      const word = firstByte === QUOTE ? token.word() : undefined;
      if (word !== undefined && this.#rules.roles.words.has(word)) this.#hasRole = true;
      else this.#badRole();
    } else if (this.#section === TOOLS && this.#key === TYPE) {
      this.#checkToolType(firstByte, token);
    } else if (this.#isMaxUses) {
      this.#checkMaxUses(firstByte, token);
    }
  }

  #checkMaxUses(firstByte: number, token: JsonToken): void {
    const uses = firstByte === NULL ? undefined : Number(firstByte === QUOTE ? Number.NaN : token.text());
    const isSound = uses === undefined || (Number.isInteger(uses) && uses >= 0 && uses <= MAX_TOOL_USES);
    if (!isSound) this.#invalid('.max_uses', MAX_USES_EXPECTED);
    if (this.#maxUses !== undefined) this.#invalid('.max_uses', 'the tool contains this member more than once');
    this.#maxUses = { uses, from: token.start, to: token.end };
  }

  /** Decides the cost rule of a tool whose type alone does not decide it. Called when the whole body has arrived. */
  decideForm(place: FormedPlace, value: Readonly<Record<string, unknown>>): void {
    const { tool, type, index } = place;
    const form = tool.formOf(value);
    const rule = form === undefined ? undefined : tool.forms[form];
    if (rule === undefined) this.fault ??= notSupported(`tools[${index}]`, UNKNOWN_FORM);
    else this.#ownTool(rule, type, place, undefined);
  }

  #endTool(type: string, to: number): void {
    const place = { from: this.#itemStart, to, index: this.#item };
    const tool = toolRow(this.#rules.table, type);
    if (this.#vendorTools > MAX_VENDOR_TOOLS) return;
    if (tool === undefined) this.#unknownTool(type, place);
    else if ('forms' in tool) this.#formedTool({ ...place, tool, type });
    else this.#ownTool(tool, type, place, this.#maxUses);
  }

  #formedTool(place: FormedPlace): void {
    this.#countVendorTool();
    this.formedTools.push(place);
  }

  #countVendorTool(): void {
    this.#vendorTools += 1;
    if (this.#vendorTools > MAX_VENDOR_TOOLS)
      this.#invalid('', `expected at most ${MAX_VENDOR_TOOLS} tools that run at the vendor`);
  }

  #unknownTool(type: string, place: ItemPosition): void {
    this.#countVendorTool();
    this.toolOverheads += 1;
    this.parts.noteUnknown(`tools.${type === '' ? '(no type)' : type}`);
    this.openTools.push(place);
    const param = `tools[${place.index}].type`;
    this.leaves ??= param;
    this.#addExtra({ name: UNKNOWN_TOOL, param });
  }

  /** Adds the cost of a tool in the top-level `tools` to the cost of the call. @param maxUses the use limit written in that tool */
  #ownTool(rule: ToolRule, type: string, place: ItemPosition, maxUses: MaxUses | undefined): void {
    const param = `tools[${place.index}].type`;
    if (rule.names !== undefined && !this.#rules.shared.has(rule.names)) this.fault ??= notShared(rule.names, param);
    if (isUnmetered(rule)) {
      this.openTools.push(place);
      this.#addExtra({ name: withoutVersion(type), param });
    }
    this.#weighTool(rule, param, maxUses);
  }

  /** Records the parts and tools of the message or item that has ended, if they have prices of their own. */
  #endParts(): void {
    const { priced, addedTools } = this.parts;
    if (priced === undefined && addedTools === undefined) return;
    const param = this.#itemParam;
    for (const [name, { needs }] of priced ?? []) this.#addExtra({ name, param, ...needs });
    // The gateway cannot write a limit into a tool inside a message.
    for (const rule of addedTools ?? []) this.#weighTool(rule, param, undefined, false);
    this.parts.priced = undefined;
    this.parts.addedTools = undefined;
  }

  get #itemParam(): string {
    return `${this.#rules.conversation}[${this.#item}]${this.#rules.itemsAreParts ? '' : '.content'}`;
  }

  /** Adds the cost of one tool to the cost of the call. @param maxUses the use limit written in the tool itself */
  #weighTool(rule: ToolRule, param: string, maxUses: MaxUses | undefined, canLimit = true): void {
    const { overheads, furtherPasses = 0, meter, isLimited, makes } = rule;
    if (rule.leaves !== undefined) this.leaves ??= param;
    this.toolOverheads += overheads;
    if (meter === undefined) this.furtherPasses = Math.max(this.furtherPasses, furtherPasses);
    if (rule.class === 'outside') this.parts.isUnbounded = true;
    if (meter === undefined && isLimited !== true) return;
    const isShared = this.#rules.table.toolLimit !== undefined;
    const places = isShared || !canLimit ? NO_PLACE : this.#limitPlaces(maxUses);
    const runsModel = rule.furtherPasses === undefined;
    const limit = isLimited === true ? { runsModel, ...places, ...(isShared && { isShared }) } : undefined;
    const pieces = isLimited === true ? maxUses?.uses : 1;
    const further = meter === undefined || furtherPasses === 0 ? undefined : { furtherPasses };
    this.#countVendorTool();
    this.toolUses ??= [];
    this.toolUses.push({ meter, pieces, ...further, limit, isReported: true, param });
    if (makes !== undefined && !this.makes?.includes(makes)) this.makes = [...(this.makes ?? []), makes];
  }

  #addExtra(extra: Extra): void {
    this.extras ??= new Map();
    if (!this.extras.has(extra.name)) this.extras.set(extra.name, extra);
  }

  /** Returns the position at which the gateway can write a tool's use limit, or the position of the limit that the client has written. */
  #limitPlaces(maxUses: MaxUses | undefined): Pick<ToolLimit, 'insert' | 'own'> {
    const after = this.#itemStart + 1;
    if (maxUses === undefined) return { insert: { from: after, to: after, name: 'max_uses' } };
    const { uses, from, to } = maxUses;
    const place = { from, to, name: undefined };
    return uses === undefined ? { insert: place } : { insert: undefined, own: place };
  }

  #badRole(): void {
    this.#hasRole = true;
    this.fault ??= this.#rules.roles.refuse(this.#item);
  }

  #checkToolType(firstByte: number, token: JsonToken): void {
    if (firstByte === QUOTE) {
      if (this.#toolType !== undefined) this.#invalid('.type', 'the tool contains this member more than once');
      this.#toolType = token.word()?.text ?? '';
    } else if (firstByte !== NULL) {
      this.#invalid('.type', 'expected a string');
    }
  }

  /** Rejects an assistant message of a Chat call that references a spoken answer kept by the vendor. */
  #earlierAudio(): void {
    if (this.protocol !== 'chat') return;
    this.parts.isUnbounded = true;
    if (!this.#rules.shared.has('audio')) this.fault ??= notShared('audio', `messages[${this.#item}].audio`);
  }

  #invalid(place: string, problem: string): void {
    const list = this.#section === TOOLS ? 'tools' : this.#rules.conversation;
    this.fault ??= invalidParam(`${list}[${this.#item}]${place}`, problem);
  }
}

function withBit(bits: number, at: number, isSet: boolean): number {
  return isSet ? bits | (1 << at) : bits & ~(1 << at);
}

function objectionTo({ names, why }: Objection, param: string): GatewayError {
  if (names !== undefined) return notShared(names, param);
  return fail('MODEL_NOT_PRICED', { param, message: `The configuration has no price for a content part: ${why}.` });
}

/** Returns a tool's type without the version at its end, because clients may send any version. */
function withoutVersion(type: string): string {
  return type.replace(/_[0-9]+$/, '');
}

const NULL = 0x6e;
const MAX_PARAM_LENGTH = 100;
const UNKNOWN_FORM = 'The tool has a form that the gateway does not know.';
const UNKNOWN_TOOL = 'a tool of an unknown type';
const NO_PLACE = { insert: undefined } as const;
const MAX_USES_EXPECTED = `expected an integer from 0 to ${MAX_TOOL_USES}`;

/** The position of an item of the conversation or of `tools` in the body. */
export interface ItemPosition {
  readonly from: number;
  readonly to: number;
  readonly index: number;
}

/** A tool of the body whose content decides its cost rule and is not read yet. */
interface FormedPlace extends ItemPosition {
  readonly tool: FormedTool;
  readonly type: string;
}

interface MaxUses {
  readonly uses: number | undefined;
  readonly from: number;
  readonly to: number;
}
