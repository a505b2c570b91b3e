import { DETAILS, type ImageDetail } from '../../core/catalog/catalog';
import type { JsonToken } from '../../core/http/json-scanner';
import { type JsonWord, knownWord } from '../../core/http/json-words';
import { SEAL } from '../../core/protocols/seal';
import type { ContentPlace } from './address-gate';
import type { PartWord } from './part-words';

/** A member that is read. */
export interface Key {
  /** Whether its value brings the content of the part around it. */
  readonly isHolder?: boolean;
  /** The kind of address that it has. */
  readonly place?: ContentPlace;
  /** Whether clients send signatures back in it: visible and hidden reasoning of Messages, and reasoning of Responses. */
  readonly isSignature?: boolean;
  /** Whether it may hold any JSON of the client, which the vendor reads as text: the arguments of a tool and their schema. */
  readonly isPassedOver?: boolean;
}

export const KEYS = {
  type: {},
  text: {},
  content: {},
  source: { isHolder: true },
  image_url: { isHolder: true, place: 'address' },
  file: { isHolder: true },
  input_audio: { isHolder: true },
  url: { place: 'address' },
  detail: {},
  data: { isSignature: true },
  file_data: { place: 'file' },
  file_id: {},
  file_url: { place: 'address' },
  encrypted_content: { isSignature: true },
  signature: { isSignature: true },
  id: {},
  role: {},
  output: {},
  summary: {},
  /** A tool that a message adds to those of the request. */
  definition: {},
  tools: {},
  input: { isPassedOver: true },
  arguments: { isPassedOver: true },
  parameters: { isPassedOver: true },
} as const satisfies Readonly<Record<string, Key>>;

export const KEY_OF: ReadonlyMap<JsonWord, Key> = new Map(
  Object.entries(KEYS).map(([name, key]) => [knownWord(name), key]),
);

export interface PartPlaces {
  /** The depth of content parts: the objects in `messages[].content[]`, or the items of `input[]`. */
  readonly part: number;
  /** The members of a part that are lists of parts, such as the content of a tool's result. */
  readonly lists: readonly (Key | undefined)[];
  /** Whether parts are the items of the conversation themselves. Such items may have no type and may bring tools. */
  readonly areItems: boolean;
}

export const IN_CONTENT: PartPlaces = { part: 5, lists: [KEYS.content], areItems: false };
export const ITEMS: PartPlaces = { part: 3, lists: [KEYS.content, KEYS.output, KEYS.summary], areItems: true };

/** An address that no request may have, and what is expected there. */
export interface RefusedAddress {
  /** Its place below the item, such as `[0].image_url.url`. */
  readonly path: string;
  readonly problem: string;
}

/**
 * A container that is read, and what is known of it if it is an object, whose keys may come in any order. There is one for each
 * depth, which serves one container after the other.
 */
export class Frame {
  /** Whether it is an object under way. */
  isObject = false;
  /** The index of the value under way in a list. */
  index = -1;
  /** The nesting depth of the content part that is read; 0 outside of content parts. */
  objectAt = 0;
  /** Where the object begins in the body. */
  start = 0;
  /** The key under way if it is one of `KEYS`, and its name. */
  key: Key | undefined;
  name = '';
  /** An address in a place that tables name, and an address that is not of the web in any other. The type of the part decides about both. */
  refused: RefusedAddress | undefined;
  foreign: RefusedAddress | undefined;
  hasType = false;
  word: PartWord | undefined;
  /** The type as text if no table has it. */
  unknownType: string | undefined;
  /** The kind that its keys suggest if it has no type. */
  untyped: JsonWord | undefined;
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
  /** Whether a key that the check depends on, such as `type`, occurs twice. Parsers differ in which value they take. */
  isAmbiguous = false;

  begin(isObject: boolean, objectAt: number, start: number): void {
    this.isObject = isObject;
    this.index = -1;
    this.objectAt = objectAt;
    if (!isObject) return;
    this.start = start;
    this.key = undefined;
    this.name = '';
    this.refused = undefined;
    this.foreign = undefined;
    this.hasType = false;
    this.word = undefined;
    this.unknownType = undefined;
    this.untyped = undefined;
    this.source = undefined;
    this.hasSource = false;
    this.dataBytes = 0;
    this.detail = undefined;
    this.inner = undefined;
    this.isSealed = false;
    this.isNoImage = false;
    this.isAmbiguous = false;
  }
}

/** The beginning of an image as a data URL. Some programs write every `/` as `\/`. */
const IMAGE_DATA = /^"data:image\\?\/[^,"\\]{0,200};base64,/i;
const FILE_DATA = /^"data:[^,"\\]{0,200};base64,/i;
const DATA_URL = /^"data:/i;
const MAX_DATA_URL_HEAD_BYTES = 256;
const SEALED = `"${SEAL}`;

const DETAIL_WORDS: ReadonlyMap<JsonWord, ImageDetail> = new Map(DETAILS.map((word) => [knownWord(word), word]));

export function isSealed(token: JsonToken): boolean {
  return token.end - token.start > SEALED.length && token.head(SEALED.length) === SEALED;
}

/** Adds a base64 value to an object. @param headLength the length of what stands before the base64, with the quote */
export function noteData(frame: Frame, token: JsonToken, headLength: number): void {
  frame.dataBytes += token.end - token.start - headLength - 1;
}

/** Notes the detail of an image. JSON readers differ in which one of two they use. */
export function noteDetail(frame: Frame, token: JsonToken): void {
  const word = frame.detail === undefined ? token.word() : undefined;
  frame.detail = (word && DETAIL_WORDS.get(word)) ?? 'most';
}

/** Notes where a part gets its content. A part with two sources is ambiguous. */
export function noteSource(frame: Frame, source: string): void {
  frame.isAmbiguous ||= frame.hasSource;
  frame.hasSource = true;
  frame.source = source;
}

/** Notes an address, or a data URL with the content itself. A vendor may read or unpack data that is not an image. */
export function noteAddress(frame: Frame, key: Key, token: JsonToken): void {
  const isFile = key === KEYS.file_data;
  const beginning = token.head(MAX_DATA_URL_HEAD_BYTES);
  const head = (isFile ? FILE_DATA : IMAGE_DATA).exec(beginning)?.[0];
  if (head !== undefined) noteData(frame, token, head.length);
  else frame.isNoImage ||= DATA_URL.test(beginning);
  if (isFile) noteSource(frame, 'file_data');
  else noteSource(frame, head === undefined ? 'url' : 'data');
}
