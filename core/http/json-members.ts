import { JsonError, type JsonObserver, type JsonToken, scanWhole } from './json-scanner';

/** Byte offsets in the body: of the member with its key, and of its value. The byte at each `end` is not included. */
export interface MemberPlace {
  readonly start: number;
  readonly valueStart: number;
  readonly end: number;
}

/** The most members at the top level; no valid call or answer has more. The limit keeps the map small for a malicious body. */
const MAX_MEMBERS = 4_096;

const NONE: ReadonlySet<string> = new Set();

/** Records the positions of the top-level members of a JSON object, by unescaped key. For a repeated key, the last member counts. */
export class TopLevelMembers implements JsonObserver {
  readonly places = new Map<string, MemberPlace>();
  /** Whether the JSON text is an object; false before any of the text was read. */
  isObject = false;
  /** The first repeated key of `once`, the keys that may not be repeated; undefined if none was repeated. */
  repeated: string | undefined;
  name = '';

  readonly #once: ReadonlySet<string>;
  #start = 0;
  #valueStart = 0;

  /** @param once keys that may not be repeated */
  constructor(once: ReadonlySet<string> = NONE) {
    this.#once = once;
  }

  open(depth: number, isObject: boolean, token: JsonToken): void {
    if (depth === 1) this.isObject = isObject;
    else if (depth === 2) this.#valueStart = token.start;
  }

  close(depth: number, token: JsonToken): void {
    if (depth === 2) this.#end(token);
  }

  key(depth: number, token: JsonToken): void {
    if (depth !== 1) return;
    const name = token.word()?.text;
    if (name === undefined) throw new JsonError('JSON has a key of more than 4 KiB', token.start);
    if (this.places.size === MAX_MEMBERS) throw new JsonError(`JSON has more than ${MAX_MEMBERS} members`, token.start);
    if (this.places.has(name) && this.#once.has(name)) this.repeated ??= name;
    this.name = name;
    this.#start = token.start;
  }

  scalar(depth: number, _firstByte: number, token: JsonToken): void {
    if (depth !== 1) return;
    this.#valueStart = token.start;
    this.#end(token);
  }

  #end(token: JsonToken): void {
    if (!this.isObject) return;
    this.places.set(this.name, { start: this.#start, valueStart: this.#valueStart, end: token.end });
  }
}

/**
 * Returns the positions of the members of a complete JSON object, in one piece or several; undefined if it is not a JSON object.
 */
export function findMembers(chunks: readonly Buffer[]): ReadonlyMap<string, MemberPlace> | undefined {
  const members = new TopLevelMembers();
  return scanWhole(chunks, members) && members.isObject ? members.places : undefined;
}

/** Returns the text from byte `start` to byte `end`. Most bodies are in one chunk, and then need no copy. */
export function textOfChunks(chunks: readonly Buffer[], start: number, end: number): string {
  const [first, second] = chunks;
  if (first !== undefined && second === undefined) return first.toString('utf8', start, end);
  return sliceChunks(chunks, start, end).toString();
}

/** Returns the position of the value at this path of member names; undefined if there is none. */
export function findPlace(
  chunks: readonly Buffer[],
  path: readonly string[],
): Pick<MemberPlace, 'valueStart' | 'end'> | undefined {
  let inner = chunks;
  let place: Pick<MemberPlace, 'valueStart' | 'end'> | undefined;
  for (const name of path) {
    const found = findMembers(inner)?.get(name);
    if (found === undefined) return undefined;
    const base: number = place?.valueStart ?? 0;
    place = { valueStart: base + found.valueStart, end: base + found.end };
    inner = [sliceChunks(inner, found.valueStart, found.end)];
  }
  return place;
}

/** Returns the bytes from `start` to `end` of a text in chunks. It copies them only if they lie in several chunks. */
export function sliceChunks(chunks: readonly Buffer[], start: number, end: number): Buffer {
  const parts: Buffer[] = [];
  let base = 0;
  for (const chunk of chunks) {
    if (base >= end) break;
    if (base + chunk.length > start) parts.push(chunk.subarray(Math.max(start - base, 0), end - base));
    base += chunk.length;
  }
  const [first] = parts;
  return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
}
