import { PROTOCOLS, type Protocol } from '../../core/catalog/protocols';
import { fail, type GatewayError, shorten } from '../../core/errors';
import { TopLevelMembers } from '../../core/http/json-members';
import { type JsonObserver, type JsonToken, QUOTE } from '../../core/http/json-scanner';
import type { Extra, ToolLimit, ToolUse } from '../../core/protocols/reading';
import { MOST_USES } from '../../core/protocols/request-rows';
import type { FormedTool, SharedObject, ToolRule } from '../../core/protocols/request-table';
import { memberRow, REQUEST_TABLES, toolRow } from '../../core/protocols/request-tables';
import { type AddressGate, FOREIGN_PROBLEM, isForeign } from './address-gate';
import { InputReader } from './input-reader';
import { isUnmetered, type Objection, PartReader } from './part-reader';
import { notShared, notSupported, ONCE } from './refusals';
import type { AcceptedRoles } from './roles';

const ROLE = Buffer.from('role');
const CONTENT = Buffer.from('content');
const TYPE = Buffer.from('type');
const AUDIO = Buffer.from('audio');
const MAX_USES = Buffer.from('max_uses');
const CACHE_CONTROL = Buffer.from('cache_control');
/** The value of `ttl` that means an hour. The text elsewhere in the body only makes the hold larger. */
const HOUR = Buffer.from('1h');

/** The two lists whose items are read: the conversation, whatever its member is called, and the tools. */
type Section = 'conversation' | 'tools';

/** The keys that are read in an item of each list. */
const ITEM_KEYS: Readonly<Record<Section, readonly Buffer[]>> = {
  conversation: [ROLE, CONTENT, AUDIO],
  tools: [TYPE, MAX_USES],
};

/** The most tools that run at the vendor, or whose text must be read. Real requests have a few. */
const MOST_VENDOR_TOOLS = 1_000;

/** The most items that a conversation may name, because each needs a look-up. Real conversations name far fewer. */
const MOST_REFERENCES = 2_000;

/** The depth of an item of the conversation or of `tools`, and below it the depth of the list. */
const ITEM = 3;
const LIST = 2;
/** The depth of a part inside a part, such as the content of a tool's result. */
const DEEPEST_ENTRY = 7;

/**
 * Reads a call's body while it arrives: notes its members, checks the conversation and `tools`, and reads the content parts. It
 * keeps errors instead of throwing them, because the body may turn out not to be JSON at all.
 */
export class CallObserver implements JsonObserver {
  readonly members = new TopLevelMembers(ONCE);
  fault: GatewayError | undefined;
  /** The reader of the `input` of an embeddings call, which has neither conversation nor tools. */
  readonly inputs: InputReader | undefined;

  readonly parts: PartReader;
  /** Members that stand in the body twice. JSON readers differ in which one they use. */
  readonly repeated = new Set<string>();
  /** How many entries the lists outside of content parts have: turns, calls, instructions, tools and stop sequences. */
  entries = 0;
  /** How many times the tools cost the model's `toolOverheadTokens`. */
  toolOverheads = 0;
  /** How many further times the vendor may run the model because of a tool without a price of its own. */
  furtherPasses = 0;
  /** Tools that run at the vendor, in the form of `ToolUse`; undefined if there are none. */
  toolUses: ToolUse[] | undefined;
  /** What else the vendor charges apart, by name. */
  readonly extras = new Map<string, Extra>();
  /** Tools that could name something that the vendor keeps. */
  readonly openTools: ItemPlace[] = [];
  /** Tools whose rule is decided when the whole body is there. */
  readonly formedTools: FormedPlace[] = [];
  /** Items of the conversation that name an item of an earlier answer to the same account. */
  readonly references: ItemPlace[] = [];
  /** The kinds of objects that the vendor's tools may create; undefined if there are none. */
  makes: SharedObject[] | undefined;

  /** Whether the body asks for something to be kept in the vendor's cache, and whether it names an hour. */
  namesCache = false;
  namesHour = false;

  /** Whether the top-level member under way is in no table, so that it may bring anything. */
  #isUnknown = false;
  readonly #conversation: string;
  /** Whether an item of the conversation is itself a content part. Such items need not be messages and may have no role. */
  readonly #itemsAreParts: boolean;
  /** By depth: whether the container under way is a list, and whether it is an entry of one. */
  readonly #isList: boolean[] = [];
  readonly #isEntry: boolean[] = [];
  #section: Section | 'input' | undefined;
  #item = -1;
  /** The key under way in that item; undefined if it is not one that is read. */
  #key: Buffer | undefined;
  #hasRole = false;
  #itemStart = 0;
  /** The type of the tool under way, and its limit. A tool without a type runs at the client. */
  #toolType: string | undefined;
  #maxUses: MaxUses | undefined;
  #vendorTools = 0;

  constructor(
    readonly protocol: Protocol,
    private readonly roles: AcceptedRoles,
    private readonly shared: ReadonlySet<SharedObject>,
    gate: AddressGate,
  ) {
    this.inputs = protocol === 'embeddings' ? new InputReader() : undefined;
    this.#conversation = PROTOCOLS[protocol].conversation;
    this.#itemsAreParts = REQUEST_TABLES[protocol].items !== undefined;
    this.parts = new PartReader(protocol, ({ names }) => names === undefined || shared.has(names), gate);
  }

  open(depth: number, isObject: boolean, token: JsonToken): void {
    if (depth <= LIST) this.members.open(depth, isObject, token);
    if (depth <= DEEPEST_ENTRY) this.#countEntry(depth, isObject);
    if (this.#section === undefined) return;
    if (this.#section === 'input') {
      this.inputs?.open(depth, isObject, token.start);
      return;
    }
    if (this.#isPart(depth)) this.parts.open(depth, isObject, token.start);
    if (depth === ITEM) this.#beginItem(isObject, token.start);
    else if (depth === ITEM + 1 && this.#isMaxUses) this.#invalid('.max_uses', MAX_USES_EXPECTED);
    else if (depth === ITEM + 1 && this.#isValueOf(ROLE)) this.#badRole();
    else if (depth === ITEM + 1 && this.#isValueOf(AUDIO)) this.#earlierAudio();
  }

  close(depth: number, token: JsonToken): void {
    if (depth <= LIST) this.members.close(depth, token);
    if (this.#section === 'input') this.inputs?.close(depth, token.end);
    if (depth === LIST) this.#section = undefined;
    if (this.#section === undefined) return;
    if (this.#section === 'input') return;
    if (this.#isPart(depth)) this.parts.close(depth, token.end);
    if (depth === ITEM) this.#endItem(token.end);
  }

  key(depth: number, token: JsonToken): void {
    if (token.is(CACHE_CONTROL)) this.namesCache = true;
    if (depth === 1) {
      this.members.key(depth, token);
      if (this.members.places.has(this.members.name)) this.repeated.add(this.members.name);
      this.#enterSection(this.members.name);
      this.#isUnknown = memberRow(REQUEST_TABLES[this.protocol], this.members.name) === undefined;
    } else if (this.#section !== undefined && this.#section !== 'input') {
      if (depth === ITEM) this.#beginMember(this.#section, token);
      if (this.#isPart(depth)) this.parts.key(depth, token);
    }
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (firstByte === QUOTE && token.is(HOUR)) this.namesHour = true;
    if (depth === 1) this.members.scalar(depth, firstByte, token);
    if (this.#isUnknown && firstByte === QUOTE && isForeign(token))
      this.fault ??= refusalOf(shorten(this.members.name, LONGEST_PARAM), FOREIGN_PROBLEM);
    if (depth === LIST && this.#isList[LIST] === true) this.entries += 1;
    if (this.#section === undefined) return;
    if (this.#section === 'input') this.inputs?.scalar(depth, firstByte, token);
    else if (depth === LIST) this.#beginItem(false, token.start);
    else if (depth === ITEM) this.#checkItemValue(firstByte, token);
    if (this.#isPart(depth)) this.parts.scalar(depth, firstByte, token);
  }

  /** Counts the objects in the lists of the body, and in the lists of these objects. `PartReader` counts those in content parts. */
  #countEntry(depth: number, isObject: boolean): void {
    this.#isList[depth] = !isObject;
    const isInList = this.#isList[depth - 1] === true && (depth === ITEM || this.#isEntry[depth - 2] === true);
    this.#isEntry[depth] = isObject && isInList;
    if (isObject && isInList && !this.#isPart(depth)) this.entries += 1;
  }

  #enterSection(name: string): void {
    if (this.inputs !== undefined) this.#section = name === 'input' ? name : undefined;
    else this.#section = name === this.#conversation ? 'conversation' : name === 'tools' ? name : undefined;
    this.#item = -1;
  }

  #isValueOf(key: Buffer): boolean {
    return this.#section === 'conversation' && this.#key === key;
  }

  /** True if the reader of content parts reads the values at this depth. */
  #isPart(depth: number): boolean {
    if (this.#itemsAreParts) return this.#section === 'conversation' && depth >= ITEM;
    return depth > ITEM && this.#isValueOf(CONTENT);
  }

  /** Notes the key of a member. Rejects `Max_Uses`, because a reader that ignores case would take it for a limit that the gateway did not see. */
  #beginMember(section: Section, token: JsonToken): void {
    this.#key = ITEM_KEYS[section].find((word) => token.is(word));
    const mayLookAlike = this.#key === undefined && section === 'tools';
    if (mayLookAlike && token.end - token.start === MAX_USES.length + 2 && token.text()?.toLowerCase() === 'max_uses')
      this.#invalid('', 'did you mean "max_uses"?');
  }

  get #isMaxUses(): boolean {
    return this.#section === 'tools' && this.#key === MAX_USES;
  }

  #beginItem(isObject: boolean, start: number): void {
    this.#item += 1;
    this.#key = undefined;
    this.#hasRole = false;
    this.#itemStart = start;
    this.#toolType = undefined;
    this.#maxUses = undefined;
    if (this.#section === 'tools' && this.#item === 0) this.toolOverheads += 1;
    if (!isObject && this.#section === 'conversation') this.#invalid('', 'expected an object');
  }

  #endItem(end: number): void {
    if (this.#section === 'tools') {
      if (this.#toolType !== undefined) this.#endTool(this.#toolType, end);
      return;
    }
    this.#endParts();
    if (!this.#itemsAreParts) this.parts.endMessage({ start: this.#itemStart, end });
    if (!this.#hasRole && !this.#itemsAreParts) this.#invalid('.role', 'is missing');
    const { objection, isReference, refused } = this.parts;
    if (isReference) this.#reference(end);
    if (refused !== undefined) this.fault ??= refusalOf(this.#itemParam + refused.path, refused.problem);
    if (objection === undefined) return;
    this.fault ??= objectionTo(objection, this.#itemParam);
  }

  #reference(to: number): void {
    if (this.references.length === MOST_REFERENCES)
      this.#invalid('', `names an item, and ${MOST_REFERENCES} before it do; expected no more`);
    else this.references.push({ from: this.#itemStart, to, index: this.#item });
  }

  #checkItemValue(firstByte: number, token: JsonToken): void {
    if (this.#section === 'conversation' && this.#key === ROLE) {
      if (firstByte === QUOTE && this.roles.words.some((role) => token.is(role))) this.#hasRole = true;
      else this.#badRole();
    } else if (this.#section === 'tools' && this.#key === TYPE) {
      this.#checkToolType(firstByte, token);
    } else if (this.#isMaxUses) {
      this.#checkMaxUses(firstByte, token);
    }
  }

  #checkMaxUses(firstByte: number, token: JsonToken): void {
    const uses = firstByte === NULL ? undefined : Number(firstByte === QUOTE ? Number.NaN : token.text());
    const isSound = uses === undefined || (Number.isInteger(uses) && uses >= 0 && uses <= MOST_USES);
    if (!isSound) this.#invalid('.max_uses', MAX_USES_EXPECTED);
    if (this.#maxUses !== undefined) this.#invalid('.max_uses', 'the tool contains this member more than once');
    this.#maxUses = { uses, from: token.start, to: token.end };
  }

  /** Decides what a tool means if its type alone does not decide. The whole body is there. */
  decideForm(place: FormedPlace, value: Readonly<Record<string, unknown>>): void {
    const { tool, type, index } = place;
    const form = tool.formOf(value);
    const rule = form === undefined ? undefined : tool.forms[form];
    if (rule === undefined) this.fault ??= notSupported(`tools[${index}]`, UNKNOWN_FORM);
    else this.#ownTool(rule, type, place, undefined);
  }

  #endTool(type: string, to: number): void {
    const place = { from: this.#itemStart, to, index: this.#item };
    const tool = toolRow(REQUEST_TABLES[this.protocol], type);
    if (this.#vendorTools > MOST_VENDOR_TOOLS) return;
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
    if (this.#vendorTools > MOST_VENDOR_TOOLS)
      this.#invalid('', `expected at most ${MOST_VENDOR_TOOLS} tools that run at the vendor`);
  }

  #unknownTool(type: string, place: ItemPlace): void {
    this.#countVendorTool();
    this.toolOverheads += 1;
    this.parts.noteUnknown(`tools.${type === '' ? '(no type)' : type}`);
    this.openTools.push(place);
    this.#addExtra({ name: UNKNOWN_TOOL, param: `tools[${place.index}].type` });
  }

  /** Weighs a tool of the request itself. @param maxUses the limit that the tool has there */
  #ownTool(rule: ToolRule, type: string, place: ItemPlace, maxUses: MaxUses | undefined): void {
    const param = `tools[${place.index}].type`;
    if (rule.names !== undefined && !this.shared.has(rule.names)) this.fault ??= notShared(rule.names, param);
    if (isUnmetered(rule)) {
      this.openTools.push(place);
      this.#addExtra({ name: withoutVersion(type), param });
    }
    this.#weighTool(rule, param, maxUses);
  }

  /** Notes the parts with prices of their own, and the tools, that a message or an item has brought. */
  #endParts(): void {
    const { priced, addedTools } = this.parts;
    if (priced.size === 0 && addedTools.length === 0) return;
    const param = this.#itemParam;
    for (const [name, { needs }] of priced) this.#addExtra({ name, param, ...needs });
    // The gateway writes no limit into a tool inside a message.
    for (const rule of addedTools) this.#weighTool(rule, param, undefined, false);
    priced.clear();
    addedTools.length = 0;
  }

  get #itemParam(): string {
    return `${this.#conversation}[${this.#item}]${this.#itemsAreParts ? '' : '.content'}`;
  }

  /** Adds up what a tool costs. @param maxUses its own limit */
  #weighTool(rule: ToolRule, param: string, maxUses: MaxUses | undefined, canLimit = true): void {
    const { overheads, furtherPasses = 0, meter, isLimited, makes } = rule;
    this.toolOverheads += overheads;
    if (meter === undefined) this.furtherPasses = Math.max(this.furtherPasses, furtherPasses);
    if (rule.class === 'outside') this.parts.isUnbounded = true;
    if (meter === undefined && isLimited !== true) return;
    const isShared = REQUEST_TABLES[this.protocol].toolLimit !== undefined;
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
    if (!this.extras.has(extra.name)) this.extras.set(extra.name, extra);
  }

  /** Returns where the gateway can write the limit of a tool, or where the request's own is. */
  #limitPlaces(maxUses: MaxUses | undefined): Pick<ToolLimit, 'insert' | 'own'> {
    const after = this.#itemStart + 1;
    if (maxUses === undefined) return { insert: { from: after, to: after, name: 'max_uses' } };
    const { uses, from, to } = maxUses;
    const place = { from, to, name: undefined };
    return uses === undefined ? { insert: place } : { insert: undefined, own: place };
  }

  #badRole(): void {
    this.#hasRole = true;
    this.fault ??= this.roles.refuse(this.#item);
  }

  #checkToolType(firstByte: number, token: JsonToken): void {
    if (firstByte === QUOTE) {
      if (this.#toolType !== undefined) this.#invalid('.type', 'the tool contains this member more than once');
      this.#toolType = token.text() ?? '';
    } else if (firstByte !== NULL) {
      this.#invalid('.type', 'expected a string');
    }
  }

  /** Rejects a spoken answer, kept by the vendor, that an assistant's message of a Chat call names. */
  #earlierAudio(): void {
    if (this.protocol !== 'chat') return;
    this.parts.isUnbounded = true;
    if (!this.shared.has('audio')) this.fault ??= notShared('audio', `messages[${this.#item}].audio`);
  }

  #invalid(place: string, problem: string): void {
    const list = this.#section === 'tools' ? 'tools' : this.#conversation;
    this.fault ??= refusalOf(`${list}[${this.#item}]${place}`, problem);
  }
}

function refusalOf(param: string, problem: string): GatewayError {
  return fail('INVALID_FIELD', { param, message: `${param}: ${problem}` });
}

function objectionTo({ names, why }: Objection, param: string): GatewayError {
  if (names !== undefined) return notShared(names, param);
  return fail('MODEL_NOT_PRICED', { param, message: `The configuration has no price for a content part: ${why}.` });
}

/** Returns the type without the version at its end, because a client may write any number there. */
function withoutVersion(type: string): string {
  return type.replace(/_[0-9]+$/, '');
}

const NULL = 0x6e;
const LONGEST_PARAM = 100;
const UNKNOWN_FORM = 'The tool has a form that the gateway does not know.';
const UNKNOWN_TOOL = 'a tool of an unknown type';
const NO_PLACE = { insert: undefined } as const;
const MAX_USES_EXPECTED = `expected an integer from 0 to ${MOST_USES}`;

/** The place of an item of the conversation or of `tools` in the body. */
export interface ItemPlace {
  readonly from: number;
  readonly to: number;
  readonly index: number;
}

/** A tool of the body whose form is still to be read. */
interface FormedPlace extends ItemPlace {
  readonly tool: FormedTool;
  readonly type: string;
}

interface MaxUses {
  readonly uses: number | undefined;
  readonly from: number;
  readonly to: number;
}
