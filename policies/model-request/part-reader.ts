import type { Protocol } from '../../core/catalog/protocols';
import type { Dialect, PartRule, ToolRule } from '../../core/dialects/dialect';
import { DIALECTS, toolRule } from '../../core/dialects/dialects';
import { type JsonToken, QUOTE } from '../../core/http/json-scanner';
import { PART_WORDS, type PartWord } from './part-words';

/** Depth of the objects in `messages[].content[]`; those of a tool's result stand in `messages[].content[].content[]`. */
const PART = 5;
const INNER_PART = 7;

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
  /** A tool that a message adds to those of the request. */
  definition: Buffer.from('definition'),
  /** The arguments of a tool: any JSON of the client, which is text to the vendor. */
  input: Buffer.from('input'),
} as const;

const KEY_LIST: readonly Buffer[] = Object.values(KEYS);

/** A body may have any number of parts of unknown types: so many are named. */
const MOST_UNKNOWN = 10;

const DATA_URL = /^"data:[^,"\\]{0,200};base64,/i;
const MAX_DATA_URL_HEAD_BYTES = 256;

/** Why a call cannot be served. */
export type Objection = Pick<PartRule, 'names' | 'why'>;

const UNKNOWN_TOOL: Objection = { why: 'it adds a tool that is not known here' };

/** What is known of one object while it is read; its keys may come in any order. */
class Frame {
  key: Buffer | undefined;
  hasType = false;
  word: PartWord | undefined;
  /** The type as text, where no table has it. */
  unknownType: string | undefined;
  /** How the part brings its content: the `type` of `source`, `data` or `url`, `file_data` or `file_id`. */
  source: string | undefined;
  hasSource = false;
  /** The base64 in it: its length as it stands in the body, and the most tokens it would have as text. */
  dataBytes = 0;
  dataTokens = 0;
  /** A key that decides stands twice: readers differ in which one counts. */
  isAmbiguous = false;

  begin(): void {
    this.key = undefined;
    this.hasType = false;
    this.word = undefined;
    this.unknownType = undefined;
    this.source = undefined;
    this.hasSource = false;
    this.dataBytes = 0;
    this.dataTokens = 0;
    this.isAmbiguous = false;
  }
}

/**
 * Reads the content parts of a call: counts images and documents, and notes what the vendor reads that is not in the body. Objects
 * count wherever they stand in a message's content, but for the arguments of tools.
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
  readonly unknownTypes: string[] = [];

  readonly #dialect: Dialect;
  readonly #words: readonly PartWord[];
  readonly #isShared: (rule: PartRule) => boolean;
  /** By depth; undefined where an array stands. */
  readonly #frames: Frame[] = [];
  readonly #isObject: boolean[] = [];
  /** The depth of the arguments of a tool that are passed over; 0 outside of them. */
  #skipped = 0;

  constructor(protocol: Protocol, isShared: (rule: PartRule) => boolean) {
    this.#dialect = DIALECTS[protocol];
    this.#words = PART_WORDS[protocol];
    this.#isShared = isShared;
  }

  open(depth: number, isObject: boolean): void {
    if (this.#skipped !== 0) return;
    const parent = this.#frameAt(depth - 1);
    if (parent !== undefined) {
      if (parent.key === KEYS.input) this.#skipped = depth;
      else if (parent.key === KEYS.type) parent.isAmbiguous = true;
    }
    this.#isObject[depth] = isObject;
    if (!isObject) return;
    this.#frames[depth] ??= new Frame();
    this.#frames[depth].begin();
  }

  close(depth: number): void {
    if (this.#skipped !== 0) {
      if (this.#skipped === depth) this.#skipped = 0;
      return;
    }
    const frame = this.#frameAt(depth);
    if (frame !== undefined) this.#end(frame, depth);
    this.#isObject[depth] = false;
  }

  key(depth: number, token: JsonToken): void {
    if (this.#skipped !== 0) return;
    const frame = this.#frameAt(depth);
    if (frame !== undefined) frame.key = KEY_LIST.find((word) => token.is(word));
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (this.#skipped !== 0) return;
    const frame = this.#frameAt(depth);
    const key = frame?.key;
    if (frame === undefined || key === undefined || key === KEYS.text || key === KEYS.content) return;
    if (firstByte === QUOTE) this.#string(frame, key, token);
    else if (key === KEYS.type) frame.isAmbiguous = true;
  }

  #frameAt(depth: number): Frame | undefined {
    return this.#isObject[depth] === true ? this.#frames[depth] : undefined;
  }

  #string(frame: Frame, key: Buffer, token: JsonToken): void {
    if (key === KEYS.type) this.#type(frame, token);
    else if (key === KEYS.data) noteData(frame, token, 1);
    else if (key === KEYS.url || key === KEYS.imageUrl || key === KEYS.fileData) noteAddress(frame, key, token);
    else if (key === KEYS.fileId) noteSource(frame, 'file_id');
  }

  #type(frame: Frame, token: JsonToken): void {
    frame.isAmbiguous ||= frame.hasType;
    frame.hasType = true;
    frame.word = this.#words.find(({ bytes }) => token.is(bytes));
    frame.unknownType = frame.word === undefined ? (token.text() ?? '') : undefined;
  }

  /** An object has ended: it is a part, or tells its part how the content comes. */
  #end(frame: Frame, depth: number): void {
    const owner = this.#frameAt(depth - 1);
    if (owner?.key === KEYS.source || owner?.key === KEYS.imageUrl || owner?.key === KEYS.file) {
      const type = frame.unknownType ?? frame.word?.word;
      noteSource(owner, (owner.key === KEYS.source ? type : frame.source) ?? '');
      owner.dataBytes += frame.dataBytes;
      owner.dataTokens += frame.dataTokens;
      owner.isAmbiguous ||= frame.isAmbiguous;
      return;
    }
    if (owner?.key === KEYS.definition) this.#addedTool(frame);
    else if (frame.word !== undefined) this.#known(frame, frame.word);
    else if (this.#isPart(depth)) this.#unknown(frame);
  }

  /** A tool without a type runs at the client, as in `tools`. */
  #addedTool(frame: Frame): void {
    if (!frame.hasType && !frame.isAmbiguous) return;
    const rule: ToolRule | undefined = toolRule(this.#dialect, frame.unknownType ?? frame.word?.word ?? '');
    if (rule === undefined || rule.class === 'priced' || frame.isAmbiguous) this.objection ??= rule ?? UNKNOWN_TOOL;
    this.furtherPasses = Math.max(this.furtherPasses, rule?.furtherPasses ?? 0);
  }

  #isPart(depth: number): boolean {
    if (depth === PART) return true;
    return depth === INNER_PART && this.#frames[PART]?.key === KEYS.content && this.#isObject[depth - 1] !== true;
  }

  #known(frame: Frame, { rule: plain, sources }: PartWord): void {
    const rule = plain ?? sources?.get(frame.source ?? '');
    if (rule === undefined || frame.isAmbiguous) {
      this.isUnbounded = true;
      return;
    }
    if (rule.class === 'priced' || (rule.names !== undefined && !this.#isShared(rule))) this.objection ??= rule;
    this.#count(rule, frame);
  }

  #count(rule: PartRule, { dataBytes, dataTokens }: Frame): void {
    if (rule.counts === 'image') this.images += 1;
    else if (rule.counts === 'imageByUrl') this.imagesByUrl += 1;
    else if (rule.counts === 'document') this.documents += 1;
    else if (rule.class === 'outside') this.isUnbounded = true;
    if (rule.counts === undefined) return;
    this.base64Bytes += dataBytes;
    this.base64Tokens += dataTokens;
  }

  #unknown(frame: Frame): void {
    this.isUnbounded = true;
    if (this.unknownTypes.length < MOST_UNKNOWN) this.unknownTypes.push(`content.${frame.unknownType ?? '(no type)'}`);
  }
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

/** An address, or a data URL that brings the content itself. */
function noteAddress(frame: Frame, key: Buffer, token: JsonToken): void {
  const head = DATA_URL.exec(token.head(MAX_DATA_URL_HEAD_BYTES))?.[0];
  if (head !== undefined) noteData(frame, token, head.length);
  if (key === KEYS.fileData) noteSource(frame, 'file_data');
  else noteSource(frame, head === undefined ? 'url' : 'data');
}
