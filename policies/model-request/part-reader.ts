import type { ImageDetail } from '../../core/catalog/catalog';
import type { Protocol } from '../../core/catalog/protocols';
import { QUOTE } from '../../core/http/json-bytes';
import type { JsonToken } from '../../core/http/json-scanner';
import { type JsonWord, knownWord } from '../../core/http/json-words';
import type { PartRule, RequestTable, SharedObject, ToolRule } from '../../core/protocols/request-table';
import { itemsRule, REQUEST_TABLES, toolRow } from '../../core/protocols/request-tables';
import type { ItemSpan } from '../../core/wire/body-edits';
import { type AddressGate, type ContentPlace, FOREIGN_PROBLEM, isContent, isForeign } from './address-gate';
import {
  Frame,
  IN_CONTENT,
  ITEMS,
  isSealed,
  KEY_OF,
  KEYS,
  type Key,
  noteAddress,
  noteData,
  noteDetail,
  noteSource,
  type PartPlaces,
  type RefusedAddress,
} from './part-frames';
import { PART_WORDS, type PartWord } from './part-words';

/** The rules for reading content parts, which are the same for all bodies of one protocol. */
export interface PartRules {
  readonly table: RequestTable;
  readonly words: ReadonlyMap<JsonWord, PartWord>;
  readonly places: PartPlaces;
  /** The kind of object that a conversation item is, if items of this protocol belong to one account; undefined for other protocols. */
  readonly ownItems: SharedObject | undefined;
  readonly shared: ReadonlySet<SharedObject>;
  readonly gate: AddressGate;
}

export function partRules(protocol: Protocol, shared: ReadonlySet<SharedObject>, gate: AddressGate): PartRules {
  const table = REQUEST_TABLES[protocol];
  const places = table.items === undefined ? IN_CONTENT : ITEMS;
  return { table, words: PART_WORDS[protocol], places, ownItems: itemsRule(table)?.kind, shared, gate };
}

/** The source name that stands for a content part without a source. */
const NO_SOURCE = 'nothing';

const MESSAGE = knownWord('message');
const ITEM_REFERENCE = knownWord('item_reference');

/** How many unknown types of parts and tools are recorded, because a body may contain any number. */
const MAX_UNKNOWN = 10;

/** The length limit of an unknown key that the gateway reads, in bytes. No member with an address has a longer name. */
const MAX_NAME_LENGTH = 64;
/** Returns whether a member's name suggests an address, as `file_uri` and `imageUrl` do: /ur[il]s?$/i. */
function namesAddress(name: string): boolean {
  const end = lowerAt(name, name.length - 1) === 0x73 ? name.length - 1 : name.length;
  const last = lowerAt(name, end - 1);
  return (last === 0x69 || last === 0x6c) && lowerAt(name, end - 2) === 0x72 && lowerAt(name, end - 3) === 0x75;
}

/** Returns the code of an ASCII letter in lower case. No other character maps to a lower-case letter. */
function lowerAt(name: string, at: number): number {
  return name.charCodeAt(at) | 0x20;
}

/** The reason why the gateway cannot serve a call. */
export type Objection = Pick<PartRule, 'names' | 'why'>;

const AMBIGUOUS: Objection = { why: 'its type is unknown, or a member that decides its type is repeated' };
const UNKNOWN_TOOL: Objection = { why: 'it adds a tool that the gateway cannot weigh there' };

/**
 * Reads the content parts of a call. It counts images and documents, and records content that the vendor reads from outside of the body. It
 * counts the objects in all lists of a message or item, except in the arguments of tools.
 */
export class PartReader {
  /** How many objects the lists contain, except the arguments of tools. */
  entries = 0;
  images: ReadonlyMap<ImageDetail, number> = NO_IMAGES;
  imagesByUrl = 0;
  documents = 0;
  isUnbounded = false;
  /** The size of base64 in images, documents and audio, in bytes. It is not text. */
  base64Bytes = 0;
  /** The first part or added tool that the gateway must refuse, because it names a vendor resource or is ambiguous. */
  objection: Objection | undefined;
  /** The first address in the call that no content part may contain. */
  refused: RefusedAddress | undefined;
  /** How many more times the vendor may run the model because of the parts. */
  furtherPasses = 0;
  /** How many more answers the vendor may write because of the parts. */
  furtherAnswers = 0;
  /** How many times the tools that messages add increase the input by the model's `toolOverheadTokens`. */
  toolOverheads = 0;
  hasTools = false;
  /** Parts of the current message or item that the vendor charges separately (`priced`), by type; undefined if there are none. */
  priced: Map<string, PartRule> | undefined;
  /** The tools that the current message or item adds; undefined if there are none. */
  addedTools: ToolRule[] | undefined;
  /** Whether the last item that ended references an item of an earlier answer to the same account. */
  isReference = false;
  unknownTypes: string[] | undefined;
  /** Parts whose signature is valid only at the upstream that made it; undefined if there are none. */
  sealed: ItemSpan[] | undefined;

  /** Whether a part of the current message or item may make the vendor keep content, fetch some or pass it on. */
  #isLeaving = false;
  readonly #rules: PartRules;
  #images: Map<ImageDetail, number> | undefined;
  /** The number of parts in the current message, and the number of entries that `sealed` (parts valid only at one upstream) had before that message. */
  #parts = 0;
  #sealedBefore = 0;
  /** The open containers, by depth. */
  readonly #frames: Frame[] = [];
  /** The depth at which the skipped arguments of a tool began; 0 outside of such arguments. */
  #skipped = 0;

  constructor(rules: PartRules) {
    this.#rules = rules;
  }

  open(depth: number, isObject: boolean, start: number): void {
    if (this.#skipped !== 0) return;
    const around = this.#frames[depth - 1];
    if (around?.isObject !== true) {
      if (isObject) this.entries += 1;
      if (around !== undefined) around.index += 1;
    } else if (around.key?.isPassedOver === true) this.#skipped = depth;
    else if (around.key === KEYS.type) around.isAmbiguous = true;
    this.#begin(depth, isObject, isObject ? depth : (around?.objectAt ?? 0), start);
  }

  #begin(depth: number, isObject: boolean, objectAt: number, start: number): void {
    while (this.#frames.length <= depth) this.#frames.push(new Frame());
    this.#frames[depth]?.begin(isObject, objectAt, start);
  }

  close(depth: number, end: number): void {
    if (this.#skipped !== 0) {
      if (this.#skipped === depth) this.#skipped = 0;
      return;
    }
    const frame = this.#frameAt(depth);
    if (depth === this.#rules.places.part) {
      this.isReference = false;
      this.#parts += 1;
      if (frame?.isSealed === true) {
        this.sealed ??= [];
        this.sealed.push({ start: frame.start, end });
      }
    }
    if (frame === undefined) return;
    this.#end(frame, depth);
    frame.isObject = false;
  }

  /**
   * Ends a message. If every part of the message is valid only at one upstream, the whole message is marked for removal, because vendors
   * refuse an empty message.
   */
  endMessage(start: number, end: number): void {
    const own = (this.sealed?.length ?? 0) - this.#sealedBefore;
    if (own > 0 && own === this.#parts) this.sealed?.splice(this.#sealedBefore, own, { start, end });
    this.#parts = 0;
    this.#sealedBefore = this.sealed?.length ?? 0;
  }

  key(depth: number, token: JsonToken): void {
    if (this.#skipped !== 0) return;
    const frame = this.#frameAt(depth);
    if (frame === undefined) return;
    const word = token.word();
    const key = word && KEY_OF.get(word);
    const isLong = key === undefined && token.end - token.start > MAX_NAME_LENGTH;
    frame.key = key;
    frame.name = word === undefined || isLong ? '…' : word.text;
    // A parser that ignores case would take this key for `detail`.
    if (key === undefined && frame.name.length === DETAIL.length && frame.name.toLowerCase() === DETAIL)
      frame.detail = 'most';
    else if (key === KEYS.role) frame.untyped = MESSAGE;
    else if (key === KEYS.id) frame.untyped ??= ITEM_REFERENCE;
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (this.#skipped !== 0) return;
    const around = this.#frames[depth];
    if (around === undefined) return;
    if (!around.isObject) around.index += 1;
    if (firstByte === QUOTE) this.#lookAtAddress(depth, token);
    const { key } = around;
    if (!around.isObject || key === undefined || key === KEYS.text || key === KEYS.content) return;
    if (firstByte === QUOTE) this.#string(around, key, token);
    else if (key === KEYS.type) this.#noType(around, firstByte);
    else if (key === KEYS.detail) around.detail = 'most';
  }

  #frameAt(depth: number): Frame | undefined {
    const frame = this.#frames[depth];
    return frame?.isObject === true ? frame : undefined;
  }

  /** The depth of the first container below an item: the list of its parts, or the item itself. */
  get #top(): number {
    const { part, areItems } = this.#rules.places;
    return areItems ? part : part - 1;
  }

  #lookAtAddress(depth: number, token: JsonToken): void {
    const at = this.#frames[depth]?.objectAt ?? 0;
    const frame = this.#frameAt(at);
    if (frame === undefined) return;
    const place = this.#placeOf(frame, at);
    if (place === undefined) {
      const mayBe = frame.foreign === undefined && (frame.key === undefined || frame.key.isHolder === true);
      if (mayBe && isForeign(token)) frame.foreign = this.#refusal(depth, FOREIGN_PROBLEM);
      return;
    }
    // An address where files and sounds may stand, which the vendor fetches. Parts with other addresses have cost rules of their own.
    if (place !== 'address' && !isContent(token, place)) this.#isLeaving = true;
    const problem = frame.refused === undefined ? this.#rules.gate.problemOf(token, place) : undefined;
    if (problem !== undefined) frame.refused = this.#refusal(depth, problem);
  }

  #placeOf({ key, name }: Frame, depth: number): ContentPlace | undefined {
    if (key === undefined) return namesAddress(name) ? 'address' : undefined;
    if (key === KEYS.data) return this.#frameAt(depth - 1)?.key === KEYS.input_audio ? 'sound' : undefined;
    return key.place;
  }

  #refusal(depth: number, problem: string): RefusedAddress {
    let path = '';
    for (let at = this.#top; at <= depth; at += 1) {
      const frame = this.#frames[at];
      path += frame?.isObject === true ? `.${frame.name}` : `[${frame?.index}]`;
    }
    return { path, problem };
  }

  /**
   * Decides whether the addresses in an ended object matter. In a part whose type has no source, all content is text, so its addresses do
   * not matter. Objects that are not parts themselves pass their addresses to the part around them.
   */
  #endAddresses(frame: Frame, depth: number): void {
    if (frame.refused === undefined && frame.foreign === undefined) return;
    const word = frame.isAmbiguous ? undefined : frame.word;
    const around = this.#frameAt(this.#frames[depth - 1]?.objectAt ?? 0);
    const isSource = around?.key?.isHolder === true;
    if (around !== undefined && (isSource || (word === undefined && !this.#isPart(depth)))) {
      around.refused ??= frame.refused;
      around.foreign ??= frame.foreign;
    } else if (word === undefined) this.refused ??= frame.refused ?? frame.foreign;
    else if (word.sources !== undefined || word.rule?.class === 'priced') this.refused ??= frame.refused;
  }

  #string(frame: Frame, key: Key, token: JsonToken): void {
    if (key === KEYS.type) this.#type(frame, token);
    else if (key === KEYS.detail) noteDetail(frame, token);
    else if (key.place !== undefined) noteAddress(frame, key, token);
    else if (key === KEYS.file_id) noteSource(frame, 'file_id');
    else if (key.isSignature === true) {
      if (isSealed(token)) frame.isSealed = true;
      if (key === KEYS.data) noteData(frame, token, 1);
      else if (key === KEYS.encrypted_content) noteSource(frame, 'encrypted_content');
    }
  }

  #type(frame: Frame, token: JsonToken): void {
    frame.isAmbiguous ||= frame.hasType;
    frame.hasType = true;
    const word = token.word();
    frame.word = word && this.#rules.words.get(word);
    frame.unknownType = frame.word === undefined ? (word?.text ?? '') : undefined;
  }

  /** Records that the `type` of an object is not a string. In a conversation item, `null` counts as an absent type. */
  #noType(frame: Frame, firstByte: number): void {
    if (firstByte !== NULL || frame.hasType || !this.#rules.places.areItems) frame.isAmbiguous = true;
    frame.hasType = true;
  }

  /** Ends an object. The object is either a content part, or it names the source of the content of the part around it. */
  #end(frame: Frame, depth: number): void {
    this.#endAddresses(frame, depth);
    const owner = this.#frameAt(depth - 1);
    if (owner?.key?.isHolder === true) {
      const type = frame.unknownType ?? frame.word?.word;
      noteSource(owner, (owner.key === KEYS.source ? type : frame.source) ?? '');
      owner.dataBytes += frame.dataBytes;
      if (owner.key === KEYS.image_url) owner.inner = frame.detail;
      owner.isNoImage ||= frame.isNoImage;
      owner.isAmbiguous ||= frame.isAmbiguous;
      return;
    }
    if (owner?.key === KEYS.definition || this.#isAddedTool(depth)) this.#addedTool(frame);
    else if (this.#isUntyped(frame)) this.#untyped(frame, depth);
    else if (frame.word !== undefined) this.#known(frame, frame.word, depth);
    else if (this.#isPart(depth)) this.#unknown(frame);
  }

  /** Decides the cost rule of a tool that a message adds. A tool without a type runs at the client, as it does in the top-level `tools`. */
  #addedTool(frame: Frame): void {
    this.hasTools = true;
    if (!frame.hasType && !frame.isAmbiguous) return;
    const tool = toolRow(this.#rules.table, frame.unknownType ?? frame.word?.word ?? '');
    // The gateway does not have the tool's whole text, so it cannot tell whether the tool names an object kept by the vendor.
    if (tool === undefined || 'forms' in tool || isUnmetered(tool) || frame.isAmbiguous)
      this.objection ??= UNKNOWN_TOOL;
    else if (!this.#isOpen(tool)) this.objection ??= tool;
    else {
      this.addedTools ??= [];
      this.addedTools.push(tool);
    }
  }

  /** Returns whether a cost rule covers no objects at the vendor, or only a kind of object that the operator lets all customers name. */
  #isOpen({ names }: Objection): boolean {
    return names === undefined || this.#rules.shared.has(names);
  }

  /** Returns whether `depth` is the depth of the tools that a conversation item contains: `input[].tools[]`. */
  #isAddedTool(depth: number): boolean {
    const { part, areItems } = this.#rules.places;
    return areItems && depth === part + 2 && this.#frames[part]?.key === KEYS.tools;
  }

  #isUntyped(frame: Frame): boolean {
    const isTyped = frame.word !== undefined || frame.unknownType !== undefined || frame.isAmbiguous;
    return !isTyped && this.#rules.places.areItems;
  }

  /** Ends an object without a type. If the object is inside a conversation item, it matters only if it names a source of content. */
  #untyped(frame: Frame, depth: number): void {
    if (depth !== this.#rules.places.part) {
      this.isUnbounded ||= frame.hasSource;
      this.#isLeaving ||= frame.hasSource;
      return;
    }
    const word = frame.untyped && this.#rules.words.get(frame.untyped);
    if (word === undefined) this.#unknown(frame);
    else this.#known(frame, word, depth);
  }

  #isPart(depth: number): boolean {
    const { part, lists } = this.#rules.places;
    if (depth === part) return true;
    return depth === part + 2 && lists.includes(this.#frames[part]?.key) && this.#frames[depth - 1]?.isObject !== true;
  }

  #known(frame: Frame, { word, rule: plain, sources }: PartWord, depth: number): void {
    const rule = plain ?? sources?.get(frame.source ?? NO_SOURCE);
    if (rule === undefined || frame.isAmbiguous) {
      this.isUnbounded = true;
      this.#isLeaving = true;
      if (this.#rules.places.areItems) this.objection ??= AMBIGUOUS;
      return;
    }
    const isOpen = this.#isOpen(rule);
    if (!isOpen && rule.names === this.#rules.ownItems && depth === this.#rules.places.part) {
      this.isReference = true;
      return;
    }
    if (!isOpen) this.objection ??= rule;
    if (rule.class === 'priced') {
      this.priced ??= new Map();
      this.priced.set(word, rule);
    }
    this.#count(rule, frame);
  }

  #count(rule: PartRule, frame: Frame): void {
    const { dataBytes, isNoImage } = frame;
    this.#isLeaving ||= rule.leaves !== undefined;
    if (rule.counts === 'image') this.#image(frame);
    else if (rule.counts === 'imageByUrl' && isNoImage) this.isUnbounded = true;
    else if (rule.counts === 'imageByUrl') this.imagesByUrl += 1;
    else if (rule.counts === 'document') this.documents += 1;
    else if (rule.class === 'outside' || rule.class === 'priced') this.isUnbounded = true;
    this.furtherPasses = Math.max(this.furtherPasses, rule.furtherPasses ?? 0);
    this.furtherAnswers = Math.max(this.furtherAnswers, rule.furtherAnswers ?? 0);
    if (rule.counts !== undefined || rule.class === 'priced') this.base64Bytes += dataBytes;
  }

  /** Counts an image by its detail. In Responses the content part has the detail, because `image_url` is a string; elsewhere `image_url` has it. */
  #image({ detail, inner }: Frame): void {
    const asked = this.#rules.places.areItems ? (inner === undefined ? detail : 'most') : inner;
    this.#images ??= new Map();
    this.#images.set(asked ?? 'auto', (this.#images.get(asked ?? 'auto') ?? 0) + 1);
    this.images = this.#images;
  }

  #unknown(frame: Frame): void {
    this.isUnbounded = true;
    this.#isLeaving = true;
    this.noteUnknown(`content.${frame.unknownType ?? '(no type)'}`);
  }

  /** Returns whether a part since the last call of this function may make the vendor keep content, fetch some or pass it on. */
  takeLeaving(): boolean {
    const isLeaving = this.#isLeaving;
    this.#isLeaving = false;
    return isLeaving;
  }

  noteUnknown(name: string): void {
    this.unknownTypes ??= [];
    if (this.unknownTypes.length < MAX_UNKNOWN) this.unknownTypes.push(name);
  }
}

/** Returns whether the vendor charges the tool separately without reporting how often it ran. */
export function isUnmetered({ class: of, meter }: Pick<ToolRule, 'class' | 'meter'>): boolean {
  return of === 'priced' && meter === undefined;
}

const NULL = 0x6e;

const DETAIL = 'detail';
const NO_IMAGES: ReadonlyMap<ImageDetail, number> = new Map();
