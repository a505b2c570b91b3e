import { DETAILS, type ImageDetail } from '../../core/catalog/catalog';
import type { JsonToken } from '../../core/http/json-scanner';
import { type JsonWord, knownWord } from '../../core/http/json-words';
import { SEAL } from '../../core/protocols/seal';
import type { ContentPlace } from './address-gate';
import type { PartWord } from './part-words';

/** A member name that the gateway interprets in content parts. */
export interface Key {
  /** Whether the member's value describes the content of the content part that has the member, as `source` does. */
  readonly isHolder?: boolean;
  /** The kind of address that the member contains. */
  readonly place?: ContentPlace;
  /** Whether the member can contain a vendor's signature that clients return: visible and hidden reasoning of Messages, and reasoning of Responses. */
  readonly isSignature?: boolean;
  /** Whether the member may contain any JSON of the client, which the vendor reads as text: the arguments of a tool and their schema. */
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
  /** The tool that a message adds to the tools of the request. */
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
  /** The members of a part that contain lists of parts, such as the content of a tool's result. */
  readonly lists: readonly (Key | undefined)[];
  /** Whether the items of the conversation are themselves parts. Such items may have no type and may contain tools. */
  readonly areItems: boolean;
}

export const IN_CONTENT: PartPlaces = { part: 5, lists: [KEYS.content], areItems: false };
export const ITEMS: PartPlaces = { part: 3, lists: [KEYS.content, KEYS.output, KEYS.summary], areItems: true };

/** An address that no request may contain, and the description of what is expected instead. */
export interface RefusedAddress {
  /** The path of the address within its conversation item, such as `[0].image_url.url`. */
  readonly path: string;
  readonly problem: string;
}

/**
 * The state of a container (a JSON object or list) while it is being read. An object's keys may come in any order, so the state collects
 * them until the object ends. Each depth has one `Frame`, which is reused for one container after another.
 */
export class Frame {
  /** Whether the container is an object that has not ended. */
  isObject = false;
  /** The index of the current value, if the container is a list. */
  index = -1;
  /** The depth of the container itself if it is an object, otherwise of the innermost object around it; 0 outside of content parts. */
  objectAt = 0;
  /** The position in the body at which the object begins. */
  start = 0;
  /** The current key if it is one of `KEYS`, and the current key's text (`name`). */
  key: Key | undefined;
  name = '';
  /**
   * `refused`: an address that the gateway refuses in a known address member. `foreign`: an address without http or https in any other
   * member. The part's type decides whether either address matters.
   */
  refused: RefusedAddress | undefined;
  foreign: RefusedAddress | undefined;
  hasType = false;
  word: PartWord | undefined;
  /** The object's type as text, if the gateway does not know the type. */
  unknownType: string | undefined;
  /** The kind of conversation item that the object's keys suggest, if the object has no type. */
  untyped: JsonWord | undefined;
  /** The source of the part's content: the `type` of `source`, `data` or `url`, `file_data` or `file_id`. */
  source: string | undefined;
  hasSource = false;
  /** The length of the part's base64 content in the body, in bytes. */
  dataBytes = 0;
  /** The image detail that the part requests, and the one that the object in its `image_url` requests. */
  detail: ImageDetail | undefined;
  inner: ImageDetail | undefined;
  /** Whether the object has a sealed signature: an upstream's signature that the gateway has wrapped for a client of another dialect. */
  isSealed = false;
  /** Whether the object contains content that is not an image. */
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

/** Matches the beginning of an image as a data URL. Some programs write every `/` as `\/`. */
const IMAGE_DATA = /^"data:image\\?\/[^,"\\]{0,200};base64,/i;
const FILE_DATA = /^"data:[^,"\\]{0,200};base64,/i;
const DATA_URL = /^"data:/i;
const MAX_DATA_URL_HEAD_BYTES = 256;
const SEALED = `"${SEAL}`;

const DETAIL_WORDS: ReadonlyMap<JsonWord, ImageDetail> = new Map(DETAILS.map((word) => [knownWord(word), word]));

export function isSealed(token: JsonToken): boolean {
  return token.end - token.start > SEALED.length && token.head(SEALED.length) === SEALED;
}

/** Adds the size of a base64 value to an object. @param headLength the number of bytes before the base64, including the quote */
export function noteData(frame: Frame, token: JsonToken, headLength: number): void {
  frame.dataBytes += token.end - token.start - headLength - 1;
}

/** Records the requested detail of an image. If it occurs twice, the highest detail counts, because JSON parsers differ in which of two values they use. */
export function noteDetail(frame: Frame, token: JsonToken): void {
  const word = frame.detail === undefined ? token.word() : undefined;
  frame.detail = (word && DETAIL_WORDS.get(word)) ?? 'most';
}

/** Records the source of a part's content. A part with two sources is ambiguous. */
export function noteSource(frame: Frame, source: string): void {
  frame.isAmbiguous ||= frame.hasSource;
  frame.hasSource = true;
  frame.source = source;
}

/** Records an address, or a data URL with the content itself. A vendor may read or unpack data that is not an image. */
export function noteAddress(frame: Frame, key: Key, token: JsonToken): void {
  const isFile = key === KEYS.file_data;
  const beginning = token.head(MAX_DATA_URL_HEAD_BYTES);
  const head = (isFile ? FILE_DATA : IMAGE_DATA).exec(beginning)?.[0];
  if (head !== undefined) noteData(frame, token, head.length);
  else frame.isNoImage ||= DATA_URL.test(beginning);
  if (isFile) noteSource(frame, 'file_data');
  else noteSource(frame, head === undefined ? 'url' : 'data');
}
