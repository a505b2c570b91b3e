import type { Protocol } from '../../core/catalog/protocols';
import type { Dialect, PartRule, SharedObject } from '../../core/dialects/dialect';
import { DIALECTS, itemsRule, rulesOf, toolRule } from '../../core/dialects/dialects';
import { SEAL } from '../../core/dialects/seal';
import { type JsonToken, QUOTE } from '../../core/http/json-scanner';
import type { ItemPlace } from '../../core/wire/body-edits';
import { PART_WORDS, type PartWord } from './part-words';

const KEYS = {
  type: Buffer.from('type'),
  text: Buffer.from('text'),
  content: Buffer.from('content'),
  source: Buffer.from('source'),
  imageUrl: Buffer.from('image_url'),
  file: Buffer.from('file'),
  url: Buffer.from('url'),
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
  /** The arguments of a tool, and the schema of them: any JSON of the client, which is text to the vendor. */
  input: Buffer.from('input'),
  arguments: Buffer.from('arguments'),
  parameters: Buffer.from('parameters'),
} as const;

const PASSED_OVER: readonly (Buffer | undefined)[] = [KEYS.input, KEYS.arguments, KEYS.parameters];

interface Places {
  /** The depth of parts: of the objects in `messages[].content[]`, or of the items of `input[]`. */
  readonly part: number;
  /** The lists of a part that have parts in them, such as the content of a tool's result. */
  readonly lists: readonly (Buffer | undefined)[];
  /** Parts are the items of the conversation themselves: they may have no type, and bring tools. */
  readonly areItems: boolean;
}

const IN_CONTENT: Places = { part: 5, lists: [KEYS.content], areItems: false };

const PLACES: Readonly<Record<Protocol, Places>> = {
  messages: IN_CONTENT,
  chat: IN_CONTENT,
  embeddings: IN_CONTENT,
  responses: { part: 3, lists: [KEYS.content, KEYS.output, KEYS.summary], areItems: true },
};

/** The source of a part that brings none. */
const NO_SOURCE = 'nothing';

const KEY_LIST: readonly Buffer[] = Object.values(KEYS);

/** A body may have any number of parts of unknown types: so many are named. */
const MOST_UNKNOWN = 10;

/** Some programs write every `/` as `\/`. */
const IMAGE_DATA = /^"data:image\\?\/[^,"\\]{0,200};base64,/i;
const FILE_DATA = /^"data:[^,"\\]{0,200};base64,/i;
const DATA_URL = /^"data:/i;
const MAX_DATA_URL_HEAD_BYTES = 256;

/** Why a call cannot be served. */
export type Objection = Pick<PartRule, 'names' | 'why'>;

const AMBIGUOUS: Objection = { why: 'its type is unknown, or a member that decides its type is repeated' };
const UNKNOWN_TOOL: Objection = { why: 'it adds a tool that the gateway does not know' };

/** What is known of one object while it is read; its keys may come in any order. */
class Frame {
  key: Buffer | undefined;
  hasType = false;
  word: PartWord | undefined;
  /** The type as text, where no table has it. */
  unknownType: string | undefined;
  /** What it is by its keys where it has no type. */
  untyped: string | undefined;
  /** How the part brings its content: the `type` of `source`, `data` or `url`, `file_data` or `file_id`. */
  source: string | undefined;
  hasSource = false;
  /** The base64 in it: its length as it stands in the body, and the most tokens it would have as text. */
  dataBytes = 0;
  dataTokens = 0;
  /** Where it begins in the body. */
  start = 0;
  /** It has a signature that the gateway has sealed for a client of another dialect. */
  isSealed = false;
  /** It brings its content itself, as something else than an image. */
  isNoImage = false;
  /** A key that decides stands twice: readers differ in which one counts. */
  isAmbiguous = false;

  begin(): void {
    this.key = undefined;
    this.hasType = false;
    this.word = undefined;
    this.unknownType = undefined;
    this.untyped = undefined;
    this.source = undefined;
    this.hasSource = false;
    this.dataBytes = 0;
    this.dataTokens = 0;
    this.isSealed = false;
    this.isNoImage = false;
    this.isAmbiguous = false;
  }
}

/**
 * Reads the content parts of a call: counts images and documents, and notes what the vendor reads that is not in the body. Objects
 * count wherever they stand in a message's content or in an item, but for the arguments of tools.
 */
export class PartReader {
  images = 0;
  imagesByUrl = 0;
  documents = 0;
  isUnbounded = false;
  /** Base64 in images and documents is not text: its bytes, and the most tokens it would have as text. */
  base64Bytes = 0;
  base64Tokens = 0;
  /** The first part, or added tool, that cannot be served: it names a kept object, or has a price of its own. */
  objection: Objection | undefined;
  /** How many further times the vendor may run the model because of a tool that a message adds. */
  furtherPasses = 0;
  /** How many further answers the vendor may write because of a part. */
  furtherAnswers = 0;
  /** How many times the model's `toolOverheadTokens` such tools take. */
  toolOverheads = 0;
  hasTools = false;
  /** The item that ended last names one that its account must have got. */
  isReference = false;
  readonly unknownTypes: string[] = [];
  /** Parts whose signature is good only at the upstream that made it; undefined where there are none. */
  sealed: ItemPlace[] | undefined;

  readonly #dialect: Dialect;
  readonly #words: readonly PartWord[];
  readonly #places: Places;
  readonly #isShared: (rule: PartRule) => boolean;
  /** Items of this kind are bound to accounts. */
  readonly #ownItems: SharedObject | undefined;
  /** Of the message that is under way: its parts, and how many sealed ones stood before it. */
  #parts = 0;
  #sealedBefore = 0;
  /** By depth; undefined where an array stands. */
  readonly #frames: Frame[] = [];
  readonly #isObject: boolean[] = [];
  /** The depth of the arguments of a tool that are passed over; 0 outside of them. */
  #skipped = 0;

  constructor(protocol: Protocol, isShared: (rule: PartRule) => boolean) {
    this.#dialect = DIALECTS[protocol];
    this.#words = PART_WORDS[protocol];
    this.#places = PLACES[protocol];
    this.#isShared = isShared;
    this.#ownItems = itemsRule(this.#dialect)?.kind;
  }

  open(depth: number, isObject: boolean, start: number): void {
    if (this.#skipped !== 0) return;
    const parent = this.#frameAt(depth - 1);
    if (parent !== undefined) {
      if (PASSED_OVER.includes(parent.key)) this.#skipped = depth;
      else if (parent.key === KEYS.type) parent.isAmbiguous = true;
    }
    this.#isObject[depth] = isObject;
    if (!isObject) return;
    this.#frames[depth] ??= new Frame();
    this.#frames[depth].begin();
    this.#frames[depth].start = start;
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

  /** Vendors refuse a message without content: one of sealed parts alone is cut as a whole. */
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
    if (frame.key === KEYS.role) frame.untyped = 'message';
    else if (frame.key === KEYS.id) frame.untyped ??= 'item_reference';
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (this.#skipped !== 0) return;
    const frame = this.#frameAt(depth);
    const key = frame?.key;
    if (frame === undefined || key === undefined || key === KEYS.text || key === KEYS.content) return;
    if (firstByte === QUOTE) this.#string(frame, key, token);
    else if (key === KEYS.type) this.#noType(frame, firstByte);
  }

  #frameAt(depth: number): Frame | undefined {
    return this.#isObject[depth] === true ? this.#frames[depth] : undefined;
  }

  #string(frame: Frame, key: Buffer, token: JsonToken): void {
    if (SIGNATURES.includes(key) && isSealed(token)) frame.isSealed = true;
    if (key === KEYS.type) this.#type(frame, token);
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

  /** `null` is no type. */
  #noType(frame: Frame, firstByte: number): void {
    if (firstByte !== NULL || frame.hasType || !this.#places.areItems) frame.isAmbiguous = true;
    frame.hasType = true;
  }

  /** An object has ended: it is a part, or tells its part how the content comes. */
  #end(frame: Frame, depth: number): void {
    const owner = this.#frameAt(depth - 1);
    if (owner?.key === KEYS.source || owner?.key === KEYS.imageUrl || owner?.key === KEYS.file) {
      const type = frame.unknownType ?? frame.word?.word;
      noteSource(owner, (owner.key === KEYS.source ? type : frame.source) ?? '');
      owner.dataBytes += frame.dataBytes;
      owner.dataTokens += frame.dataTokens;
      owner.isNoImage ||= frame.isNoImage;
      owner.isAmbiguous ||= frame.isAmbiguous;
      return;
    }
    if (owner?.key === KEYS.definition || this.#isAddedTool(depth)) this.#addedTool(frame);
    else if (this.#isUntyped(frame)) this.#untyped(frame, depth);
    else if (frame.word !== undefined) this.#known(frame, frame.word, depth);
    else if (this.#isPart(depth)) this.#unknown(frame);
  }

  /** A tool without a type runs at the client, as in `tools`. */
  #addedTool(frame: Frame): void {
    this.hasTools = true;
    if (!frame.hasType && !frame.isAmbiguous) return;
    const tool = toolRule(this.#dialect, frame.unknownType ?? frame.word?.word ?? '');
    const rules = tool === undefined ? [] : rulesOf(tool);
    const refused = rules.find((rule) => rule.class === 'priced' || rule.uses !== undefined);
    if (rules.length === 0 || refused !== undefined || frame.isAmbiguous)
      this.objection ??= refused ?? rules[0] ?? UNKNOWN_TOOL;
    this.furtherPasses = Math.max(this.furtherPasses, ...rules.map((rule) => rule.furtherPasses ?? 0));
    if (this.#places.areItems) this.toolOverheads += Math.max(0, ...rules.map(({ overheads }) => overheads));
  }

  /** An item may bring tools: `input[].tools[]`. */
  #isAddedTool(depth: number): boolean {
    const { part, areItems } = this.#places;
    return areItems && depth === part + 2 && this.#frames[part]?.key === KEYS.tools;
  }

  #isUntyped(frame: Frame): boolean {
    const isTyped = frame.word !== undefined || frame.unknownType !== undefined || frame.isAmbiguous;
    return !isTyped && this.#places.areItems;
  }

  /** Inside of an item only what names something counts. */
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

  #known(frame: Frame, { rule: plain, sources }: PartWord, depth: number): void {
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
    if (rule.class === 'priced' || !isOpen) this.objection ??= rule;
    this.#count(rule, frame);
  }

  #count(rule: PartRule, { dataBytes, dataTokens, isNoImage }: Frame): void {
    if (rule.counts === 'image') this.images += 1;
    else if (rule.counts === 'imageByUrl' && isNoImage) this.isUnbounded = true;
    else if (rule.counts === 'imageByUrl') this.imagesByUrl += 1;
    else if (rule.counts === 'document') this.documents += 1;
    else if (rule.class === 'outside') this.isUnbounded = true;
    this.furtherPasses = Math.max(this.furtherPasses, rule.furtherPasses ?? 0);
    this.furtherAnswers = Math.max(this.furtherAnswers, rule.furtherAnswers ?? 0);
    if (rule.counts === undefined) return;
    this.base64Bytes += dataBytes;
    this.base64Tokens += dataTokens;
  }

  #unknown(frame: Frame): void {
    this.isUnbounded = true;
    if (this.unknownTypes.length < MOST_UNKNOWN) this.unknownTypes.push(`content.${frame.unknownType ?? '(no type)'}`);
  }
}

const NULL = 0x6e;

const ADDRESSES: readonly Buffer[] = [KEYS.url, KEYS.imageUrl, KEYS.fileData, KEYS.fileUrl];

/** Members in which clients send signatures back: of Messages' reasoning, shown and hidden, and of Responses'. */
const SIGNATURES: readonly Buffer[] = [KEYS.signature, KEYS.data, KEYS.encrypted];
const SEALED = `"${SEAL}`;

function isSealed(token: JsonToken): boolean {
  return token.end - token.start > SEALED.length && token.head(SEALED.length) === SEALED;
}

/** @param headLength of what stands before the base64, quote included */
function noteData(frame: Frame, token: JsonToken, headLength: number): void {
  frame.dataBytes += token.end - token.start - headLength - 1;
  frame.dataTokens += token.tokens;
}

/** A part that has two sources is ambiguous. */
function noteSource(frame: Frame, source: string): void {
  frame.isAmbiguous ||= frame.hasSource;
  frame.hasSource = true;
  frame.source = source;
}

/** An address, or a data URL that brings the content itself. What is no image there may be read as text, or unpacked. */
function noteAddress(frame: Frame, key: Buffer, token: JsonToken): void {
  const isFile = key === KEYS.fileData;
  const beginning = token.head(MAX_DATA_URL_HEAD_BYTES);
  const head = (isFile ? FILE_DATA : IMAGE_DATA).exec(beginning)?.[0];
  if (head !== undefined) noteData(frame, token, head.length);
  else frame.isNoImage ||= DATA_URL.test(beginning);
  if (isFile) noteSource(frame, 'file_data');
  else noteSource(frame, head === undefined ? 'url' : 'data');
}
