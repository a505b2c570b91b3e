import { DETAILS, type ImageDetail } from '../../core/catalog/catalog';
import type { Protocol } from '../../core/catalog/protocols';
import { type JsonToken, QUOTE } from '../../core/http/json-scanner';
import type { PartRule, RequestTable, SharedObject, ToolRule } from '../../core/protocols/request-table';
import { itemsRule, REQUEST_TABLES, toolRow } from '../../core/protocols/request-tables';
import { SEAL } from '../../core/protocols/seal';
import type { ItemPlace } from '../../core/wire/body-edits';
import { type AddressGate, type ContentPlace, FOREIGN_PROBLEM, isForeign } from './address-gate';
import { PART_WORDS, type PartWord } from './part-words';

const KEYS = {
  type: Buffer.from('type'),
  text: Buffer.from('text'),
  content: Buffer.from('content'),
  source: Buffer.from('source'),
  imageUrl: Buffer.from('image_url'),
  file: Buffer.from('file'),
  sound: Buffer.from('input_audio'),
  url: Buffer.from('url'),
  detail: Buffer.from('detail'),
  data: Buffer.from('data'),
  fileData: Buffer.from('file_data'),
  fileId: Buffer.from('file_id'),
  fileUrl: Buffer.from('file_url'),
  encrypted: Buffer.from('encrypted_content'),
  signature: Buffer.from('signature'),
  id: Buffer.from('id'),
  role: Buffer.from('role'),
  output: Buffer.from('output'),
  summary: Buffer.from('summary'),
  /** A tool that a message adds to those of the request. */
  definition: Buffer.from('definition'),
  tools: Buffer.from('tools'),
  /** The arguments of a tool and their schema. They may hold any JSON of the client, which the vendor reads as text. */
  input: Buffer.from('input'),
  arguments: Buffer.from('arguments'),
  parameters: Buffer.from('parameters'),
} as const;

const PASSED_OVER: readonly (Buffer | undefined)[] = [KEYS.input, KEYS.arguments, KEYS.parameters];

interface Places {
  /** The depth of content parts: the objects in `messages[].content[]`, or the items of `input[]`. */
  readonly part: number;
  /** The members of a part that are lists of parts, such as the content of a tool's result. */
  readonly lists: readonly (Buffer | undefined)[];
  /** Whether parts are the items of the conversation themselves. Such items may have no type and may bring tools. */
  readonly areItems: boolean;
}

const IN_CONTENT: Places = { part: 5, lists: [KEYS.content], areItems: false };
const ITEMS: Places = { part: 3, lists: [KEYS.content, KEYS.output, KEYS.summary], areItems: true };

/** The source of a part that names none. */
const NO_SOURCE = 'nothing';

const KEY_LIST: readonly Buffer[] = Object.values(KEYS);

/** How many parts and tools of unknown types are named, because a body may have any number of them. */
const MOST_UNKNOWN = 10;

/** The beginning of an image as a data URL. Some programs write every `/` as `\/`. */
const IMAGE_DATA = /^"data:image\\?\/[^,"\\]{0,200};base64,/i;
const FILE_DATA = /^"data:[^,"\\]{0,200};base64,/i;
const DATA_URL = /^"data:/i;
const MAX_DATA_URL_HEAD_BYTES = 256;
/** The most bytes of another key that is read. No member with an address has a longer one. */
const LONGEST_NAME = 64;
/** Names of members with an address, such as `file_uri` and `imageUrl`. */
const ADDRESS_NAME = /ur[il]s?$/i;

/** Why a call cannot be served. */
export type Objection = Pick<PartRule, 'names' | 'why'>;

const AMBIGUOUS: Objection = { why: 'its type is unknown, or a member that decides its type is repeated' };
const UNKNOWN_TOOL: Objection = { why: 'it adds a tool that the gateway cannot weigh there' };

/** An address that no request may have, and what is expected there. */
interface RefusedAddress {
  /** Its place below the item, such as `[0].image_url.url`. */
  readonly path: string;
  readonly problem: string;
}

/** The facts known of one object while it is read. Its keys may come in any order. */
class Frame {
  key: Buffer | undefined;
  /** The key under way if it is not one of `KEYS`. */
  name = '';
  /** An address in a place that tables name, and an address that is not of the web in any other. The type of the part decides about both. */
  refused: RefusedAddress | undefined;
  foreign: RefusedAddress | undefined;
  hasType = false;
  word: PartWord | undefined;
  /** The type as text if no table has it. */
  unknownType: string | undefined;
  /** The kind that its keys suggest if it has no type. */
  untyped: string | undefined;
  /** Where the content of the part is: the `type` of `source`, `data` or `url`, `file_data` or `file_id`. */
  source: string | undefined;
  hasSource = false;
  /** The length of its base64 in the body. */
  dataBytes = 0;
  /** The detail that it asks for, and that the object in its `image_url` asks for. */
  detail: ImageDetail | undefined;
  inner: ImageDetail | undefined;
  /** Whether it has a signature that the gateway sealed for a client of another dialect. */
  isSealed = false;
  /** Whether it contains content that is not an image. */
  isNoImage = false;
  /** Whether a key that decides is repeated. JSON readers differ in which one they use. */
  isAmbiguous = false;

  /** @param start where the object begins in the body */
  constructor(readonly start: number) {}
}

/**
 * Reads the content parts of a call. It counts images and documents and notes content that the vendor reads from outside the body.
 * Objects count wherever they stand in a message or item, except in the arguments of tools.
 */
export class PartReader {
  /** How many objects stand in lists, apart from the arguments of tools. */
  entries = 0;
  readonly images = new Map<ImageDetail, number>();
  imagesByUrl = 0;
  documents = 0;
  isUnbounded = false;
  /** The bytes of base64 in images, documents and audio, which are no text. */
  base64Bytes = 0;
  /** The first part or added tool that the gateway must refuse, because it names a kept object or is ambiguous. */
  objection: Objection | undefined;
  /** The first address that a part must not have. */
  refused: RefusedAddress | undefined;
  /** How many further times the vendor may run the model because of a part. */
  furtherPasses = 0;
  /** How many further answers the vendor may write because of a part. */
  furtherAnswers = 0;
  /** How many times the added tools take the model's `toolOverheadTokens`. */
  toolOverheads = 0;
  hasTools = false;
  /** The `priced` parts of the message or item under way, by type. */
  readonly priced = new Map<string, PartRule>();
  /** The tools that the message or item under way adds. */
  readonly addedTools: ToolRule[] = [];
  /** Whether the item that ended last names an item of an earlier answer to the same account. */
  isReference = false;
  readonly unknownTypes: string[] = [];
  /** Parts whose signature is valid only at the upstream that made it; undefined if there are none. */
  sealed: ItemPlace[] | undefined;

  readonly #table: RequestTable;
  readonly #words: readonly PartWord[];
  readonly #places: Places;
  readonly #isShared: (rule: Objection) => boolean;
  /** The kind of items that belong to one account. */
  readonly #ownItems: SharedObject | undefined;
  /** The number of parts in the message under way, and of sealed parts before that message. */
  #parts = 0;
  #sealedBefore = 0;
  /** The objects under way by depth; an entry counts only where `#isObject` is true. */
  readonly #frames: Frame[] = [];
  readonly #isObject: boolean[] = [];
  /** The depth of the object that the values of each container stand in, itself or in a list; 0 outside of parts. */
  readonly #objectAt: number[] = [];
  /** The index of the value under way in each list. */
  readonly #index: number[] = [];
  /** The depth at which the skipped arguments of a tool began; 0 outside of them. */
  #skipped = 0;

  constructor(
    protocol: Protocol,
    isShared: (rule: Objection) => boolean,
    private readonly gate: AddressGate,
  ) {
    this.#table = REQUEST_TABLES[protocol];
    this.#words = PART_WORDS[protocol];
    this.#places = this.#table.items === undefined ? IN_CONTENT : ITEMS;
    this.#isShared = isShared;
    this.#ownItems = itemsRule(this.#table)?.kind;
  }

  open(depth: number, isObject: boolean, start: number): void {
    if (this.#skipped !== 0) return;
    const parent = this.#frameAt(depth - 1);
    if (parent !== undefined) {
      if (PASSED_OVER.includes(parent.key)) this.#skipped = depth;
      else if (parent.key === KEYS.type) parent.isAmbiguous = true;
    }
    if (parent === undefined) this.#nextItem(depth - 1);
    this.#isObject[depth] = isObject;
    this.#index[depth] = -1;
    this.#objectAt[depth] = isObject ? depth : (this.#objectAt[depth - 1] ?? 0);
    if (!isObject) return;
    if (this.#isObject[depth - 1] !== true) this.entries += 1;
    this.#frames[depth] = new Frame(start);
  }

  close(depth: number, end: number): void {
    if (this.#skipped !== 0) {
      if (this.#skipped === depth) this.#skipped = 0;
      return;
    }
    const frame = this.#frameAt(depth);
    if (depth === this.#places.part) this.isReference = false;
    if (depth === this.#places.part) this.#parts += 1;
    if (frame?.isSealed === true && depth === this.#places.part) {
      this.sealed ??= [];
      this.sealed.push({ start: frame.start, end });
    }
    if (frame !== undefined) this.#end(frame, depth);
    this.#isObject[depth] = false;
  }

  /** Ends a message. If all its parts are sealed, the whole message is cut, because vendors refuse one without content. */
  endMessage(place: ItemPlace): void {
    const own = (this.sealed?.length ?? 0) - this.#sealedBefore;
    if (own > 0 && own === this.#parts) this.sealed?.splice(this.#sealedBefore, own, place);
    this.#parts = 0;
    this.#sealedBefore = this.sealed?.length ?? 0;
  }

  key(depth: number, token: JsonToken): void {
    if (this.#skipped !== 0) return;
    const frame = this.#frameAt(depth);
    if (frame === undefined) return;
    frame.key = KEY_LIST.find((word) => token.is(word));
    if (frame.key === undefined) frame.name = token.end - token.start > LONGEST_NAME ? '…' : (token.text() ?? '');
    // A reader that ignores case would take it for `detail`.
    if (frame.key === undefined && frame.name.toLowerCase() === 'detail') frame.detail = 'most';
    if (frame.key === KEYS.role) frame.untyped = 'message';
    else if (frame.key === KEYS.id) frame.untyped ??= 'item_reference';
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (this.#skipped !== 0) return;
    const frame = this.#frameAt(depth);
    const key = frame?.key;
    if (frame === undefined) this.#nextItem(depth);
    if (firstByte === QUOTE) this.#lookAtAddress(depth, token);
    if (frame === undefined || key === undefined || key === KEYS.text || key === KEYS.content) return;
    if (firstByte === QUOTE) this.#string(frame, key, token);
    else if (key === KEYS.type) this.#noType(frame, firstByte);
    else if (key === KEYS.detail) frame.detail = 'most';
  }

  #frameAt(depth: number): Frame | undefined {
    return this.#isObject[depth] === true ? this.#frames[depth] : undefined;
  }

  #nextItem(depth: number): void {
    this.#index[depth] = (this.#index[depth] ?? -1) + 1;
  }

  /** The depth of the first container below an item: the list of its parts, or the item itself. */
  get #top(): number {
    return this.#places.areItems ? this.#places.part : this.#places.part - 1;
  }

  #lookAtAddress(depth: number, token: JsonToken): void {
    const at = this.#objectAt[depth] ?? 0;
    const frame = this.#frameAt(at);
    if (frame === undefined) return;
    const place = this.#placeOf(frame, at);
    if (place === undefined) {
      const mayBe = frame.foreign === undefined && (frame.key === undefined || HOLDERS.includes(frame.key));
      if (mayBe && isForeign(token)) frame.foreign = this.#refusal(depth, FOREIGN_PROBLEM);
      return;
    }
    const problem = frame.refused === undefined ? this.gate.problemOf(token, place) : undefined;
    if (problem !== undefined) frame.refused = this.#refusal(depth, problem);
  }

  #placeOf({ key, name }: Frame, depth: number): ContentPlace | undefined {
    if (key === undefined) return ADDRESS_NAME.test(name) ? 'address' : undefined;
    if (key === KEYS.data) return this.#frameAt(depth - 1)?.key === KEYS.sound ? 'sound' : undefined;
    return ADDRESSES.includes(key) ? (key === KEYS.fileData ? 'file' : 'address') : undefined;
  }

  #refusal(depth: number, problem: string): RefusedAddress {
    let path = '';
    for (let at = this.#top; at <= depth; at += 1)
      path +=
        this.#isObject[at] === true ? `.${this.#frames[at]?.key ?? this.#frames[at]?.name}` : `[${this.#index[at]}]`;
    return { path, problem };
  }

  /**
   * Decides about the addresses in an object that ends. A part whose type has no source is text, whatever else it has. Other
   * objects pass them on to the part that they belong to.
   */
  #endAddresses(frame: Frame, depth: number): void {
    if (frame.refused === undefined && frame.foreign === undefined) return;
    const word = frame.isAmbiguous ? undefined : frame.word;
    const around = this.#frameAt(this.#objectAt[depth - 1] ?? 0);
    const isSource = around?.key !== undefined && HOLDERS.includes(around.key);
    if (around !== undefined && (isSource || (word === undefined && !this.#isPart(depth)))) {
      around.refused ??= frame.refused;
      around.foreign ??= frame.foreign;
    } else if (word === undefined) this.refused ??= frame.refused ?? frame.foreign;
    else if (word.sources !== undefined || word.rule?.class === 'priced') this.refused ??= frame.refused;
  }

  #string(frame: Frame, key: Buffer, token: JsonToken): void {
    if (SIGNATURES.includes(key) && isSealed(token)) frame.isSealed = true;
    if (key === KEYS.type) this.#type(frame, token);
    else if (key === KEYS.detail) noteDetail(frame, token);
    else if (key === KEYS.data) noteData(frame, token, 1);
    else if (ADDRESSES.includes(key)) noteAddress(frame, key, token);
    else if (key === KEYS.fileId) noteSource(frame, 'file_id');
    else if (key === KEYS.encrypted) noteSource(frame, 'encrypted_content');
  }

  #type(frame: Frame, token: JsonToken): void {
    frame.isAmbiguous ||= frame.hasType;
    frame.hasType = true;
    frame.word = this.#words.find(({ bytes }) => token.is(bytes));
    frame.unknownType = frame.word === undefined ? (token.text() ?? '') : undefined;
  }

  /** Notes a type that is not a string. `null` counts as no type in an item. */
  #noType(frame: Frame, firstByte: number): void {
    if (firstByte !== NULL || frame.hasType || !this.#places.areItems) frame.isAmbiguous = true;
    frame.hasType = true;
  }

  /** Ends an object. It is a part, or it says where the content of the part around it is. */
  #end(frame: Frame, depth: number): void {
    this.#endAddresses(frame, depth);
    const owner = this.#frameAt(depth - 1);
    if (owner?.key !== undefined && HOLDERS.includes(owner.key)) {
      const type = frame.unknownType ?? frame.word?.word;
      noteSource(owner, (owner.key === KEYS.source ? type : frame.source) ?? '');
      owner.dataBytes += frame.dataBytes;
      if (owner.key === KEYS.imageUrl) owner.inner = frame.detail;
      owner.isNoImage ||= frame.isNoImage;
      owner.isAmbiguous ||= frame.isAmbiguous;
      return;
    }
    if (owner?.key === KEYS.definition || this.#isAddedTool(depth)) this.#addedTool(frame);
    else if (this.#isUntyped(frame)) this.#untyped(frame, depth);
    else if (frame.word !== undefined) this.#known(frame, frame.word, depth);
    else if (this.#isPart(depth)) this.#unknown(frame);
  }

  /** Weighs a tool that a message adds. A tool without a type runs at the client, as in `tools`. */
  #addedTool(frame: Frame): void {
    this.hasTools = true;
    if (!frame.hasType && !frame.isAmbiguous) return;
    const tool = toolRow(this.#table, frame.unknownType ?? frame.word?.word ?? '');
    // Without the tool's whole text nobody knows whether it names something that the vendor keeps.
    if (tool === undefined || 'forms' in tool || isUnmetered(tool) || frame.isAmbiguous)
      this.objection ??= UNKNOWN_TOOL;
    else if (!this.#isShared(tool)) this.objection ??= tool;
    else this.addedTools.push(tool);
  }

  /** True at the depth of the tools that an item contains: `input[].tools[]`. */
  #isAddedTool(depth: number): boolean {
    const { part, areItems } = this.#places;
    return areItems && depth === part + 2 && this.#frames[part]?.key === KEYS.tools;
  }

  #isUntyped(frame: Frame): boolean {
    const isTyped = frame.word !== undefined || frame.unknownType !== undefined || frame.isAmbiguous;
    return !isTyped && this.#places.areItems;
  }

  /** Ends an object without a type. Inside an item it matters only if it names content. */
  #untyped(frame: Frame, depth: number): void {
    if (depth !== this.#places.part) {
      this.isUnbounded ||= frame.hasSource;
      return;
    }
    const word = this.#words.find((each) => each.word === frame.untyped);
    if (word === undefined) this.#unknown(frame);
    else this.#known(frame, word, depth);
  }

  #isPart(depth: number): boolean {
    const { part, lists } = this.#places;
    if (depth === part) return true;
    return depth === part + 2 && lists.includes(this.#frames[part]?.key) && this.#isObject[depth - 1] !== true;
  }

  #known(frame: Frame, { word, rule: plain, sources }: PartWord, depth: number): void {
    const rule = plain ?? sources?.get(frame.source ?? NO_SOURCE);
    if (rule === undefined || frame.isAmbiguous) {
      this.isUnbounded = true;
      if (this.#places.areItems) this.objection ??= AMBIGUOUS;
      return;
    }
    const isOpen = this.#isShared(rule);
    if (!isOpen && rule.names === this.#ownItems && depth === this.#places.part) {
      this.isReference = true;
      return;
    }
    if (!isOpen) this.objection ??= rule;
    if (rule.class === 'priced') this.priced.set(word, rule);
    this.#count(rule, frame);
  }

  #count(rule: PartRule, frame: Frame): void {
    const { dataBytes, isNoImage } = frame;
    if (rule.counts === 'image') this.#image(frame);
    else if (rule.counts === 'imageByUrl' && isNoImage) this.isUnbounded = true;
    else if (rule.counts === 'imageByUrl') this.imagesByUrl += 1;
    else if (rule.counts === 'document') this.documents += 1;
    else if (rule.class === 'outside' || rule.class === 'priced') this.isUnbounded = true;
    this.furtherPasses = Math.max(this.furtherPasses, rule.furtherPasses ?? 0);
    this.furtherAnswers = Math.max(this.furtherAnswers, rule.furtherAnswers ?? 0);
    if (rule.counts !== undefined || rule.class === 'priced') this.base64Bytes += dataBytes;
  }

  /** Counts an image. Only in Responses a part itself names the detail; its `image_url` is no object there. */
  #image({ detail, inner }: Frame): void {
    const asked = this.#places.areItems ? (inner === undefined ? detail : 'most') : inner;
    this.images.set(asked ?? 'auto', (this.images.get(asked ?? 'auto') ?? 0) + 1);
  }

  #unknown(frame: Frame): void {
    this.isUnbounded = true;
    this.noteUnknown(`content.${frame.unknownType ?? '(no type)'}`);
  }

  noteUnknown(name: string): void {
    if (this.unknownTypes.length < MOST_UNKNOWN) this.unknownTypes.push(name);
  }
}

/** True for a tool that the vendor charges apart and does not count. */
export function isUnmetered({ class: of, meter }: Pick<ToolRule, 'class' | 'meter'>): boolean {
  return of === 'priced' && meter === undefined;
}

const NULL = 0x6e;

/** Members whose value brings the content of the part around them. */
const HOLDERS: readonly Buffer[] = [KEYS.source, KEYS.imageUrl, KEYS.file, KEYS.sound];

const ADDRESSES: readonly Buffer[] = [KEYS.url, KEYS.imageUrl, KEYS.fileData, KEYS.fileUrl];

/** Members in which clients send signatures back: visible and hidden reasoning of Messages, and reasoning of Responses. */
const SIGNATURES: readonly Buffer[] = [KEYS.signature, KEYS.data, KEYS.encrypted];
const SEALED = `"${SEAL}`;

const DETAIL_WORDS = DETAILS.map((word) => ({ word, bytes: Buffer.from(word) }));

function isSealed(token: JsonToken): boolean {
  return token.end - token.start > SEALED.length && token.head(SEALED.length) === SEALED;
}

/** Adds a base64 value to an object. @param headLength the length of what stands before the base64, with the quote */
function noteData(frame: Frame, token: JsonToken, headLength: number): void {
  frame.dataBytes += token.end - token.start - headLength - 1;
}

/** Notes the detail of an image. JSON readers differ in which one of two they use. */
function noteDetail(frame: Frame, token: JsonToken): void {
  const word = frame.detail === undefined ? DETAIL_WORDS.find(({ bytes }) => token.is(bytes))?.word : undefined;
  frame.detail = word ?? 'most';
}

/** Notes where a part gets its content. A part with two sources is ambiguous. */
function noteSource(frame: Frame, source: string): void {
  frame.isAmbiguous ||= frame.hasSource;
  frame.hasSource = true;
  frame.source = source;
}

/** Notes an address, or a data URL with the content itself. A vendor may read or unpack data that is not an image. */
function noteAddress(frame: Frame, key: Buffer, token: JsonToken): void {
  const isFile = key === KEYS.fileData;
  const beginning = token.head(MAX_DATA_URL_HEAD_BYTES);
  const head = (isFile ? FILE_DATA : IMAGE_DATA).exec(beginning)?.[0];
  if (head !== undefined) noteData(frame, token, head.length);
  else frame.isNoImage ||= DATA_URL.test(beginning);
  if (isFile) noteSource(frame, 'file_data');
  else noteSource(frame, head === undefined ? 'url' : 'data');
}
