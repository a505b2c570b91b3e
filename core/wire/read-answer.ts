import { parseJson } from '../base/parse-json';
import type { AnswerRoom } from '../http/buffered-bytes';
import { TopLevelMembers } from '../http/json-members';
import { JsonError, JsonScanner, type JsonToken } from '../http/json-scanner';
import { parseRaw } from '../http/raw-json';
import { ItemHeads } from '../protocols/responses/large-event';
import { type ChunkReader, inOne, readEach } from './chunk-reader';

/** The maximum size of an answer that is parsed as a whole. The text of a larger answer is unknown. */
const MAX_PARSED_BYTES = 1024 * 1024;

/** The members that are read from a large answer, besides the types of the items in its `output`. */
const MEMBERS = new Set(['type', 'status', 'model', 'service_tier', 'usage', 'error', 'id', 'container']);
/** The maximum size of a member that is read from a large answer. */
const MAX_MEMBER_BYTES = 64 * 1024;

/** An unstreamed answer that has arrived completely. */
export interface WholeAnswer {
  /** The bytes of the answer; undefined if there was no memory left for them. */
  readonly bytes: Buffer | undefined;
  readonly byteLength: number;
  /** The parsed JSON of the answer, without its content if the answer is large; undefined if it is no JSON. */
  readonly body: unknown;
  readonly isPart: boolean;
}

interface AnswerReading {
  readonly maxBytes: number;
  /** The memory for the bytes; undefined if no client waits for them. */
  readonly room: AnswerRoom | undefined;
  /**
   * Whether the gateway itself must read the answer's content, for example to translate it. Up to 1 MB is then parsed even without memory
   * to keep the bytes.
   */
  readonly needsContent: boolean;
  /** Whether the answer is translated, so that the inputs of tools in it must keep their text. */
  readonly keepsInputs?: boolean;
}

/**
 * Reads an unstreamed answer to its end, and already parses a large one while it arrives. Keeps the bytes while there is memory for them.
 * @param failed gets why the answer broke off, or BodyTooLong
 */
export function readAnswer(
  chunks: ChunkReader,
  { maxBytes, room, needsContent, keepsInputs = false }: AnswerReading,
  done: (whole: WholeAnswer) => void,
  failed: (error: unknown) => void,
): void {
  let read: Buffer[] = [];
  let large: LargeAnswer | undefined;
  let hasRoom = room !== undefined;
  let total = 0;
  const scan = (): void => {
    large ??= new LargeAnswer(read);
    if (!hasRoom) read = [];
  };
  const drop = (): void => {
    hasRoom = false;
    if (!needsContent || large !== undefined) scan();
  };
  const take = (chunk: Buffer, byteLength: number): Promise<void> | undefined => {
    total = byteLength;
    if (hasRoom || large === undefined) read.push(chunk);
    if (large !== undefined) large.add(chunk);
    else if (byteLength > MAX_PARSED_BYTES) scan();
    const mayStay = !hasRoom || (room?.arrive(byteLength) ?? false);
    if (mayStay instanceof Promise) return mayStay.then((may) => (may ? undefined : drop()));
    if (!mayStay) drop();
    return undefined;
  };
  const ended = (): void => {
    const isPart = large !== undefined;
    const bytes = inOne(read);
    const tree = keepsInputs && !isPart ? parseRaw(bytes) : undefined;
    const body = isPart ? large?.read() : (tree ?? parseJson(bytes.toString('utf8')));
    done({ bytes: hasRoom ? bytes : undefined, byteLength: total, isPart, body });
  };
  readEach(chunks, maxBytes, take, ended, failed);
}

/** Reads a large answer while it arrives, and only the members that matter, because parsing all of it at once would block every other call. */
class LargeAnswer {
  readonly #members = new AnswerMembers();
  readonly #scanner = new JsonScanner(this.#members);
  readonly #found: Record<string, unknown> = {};
  /** The answer's bytes from `#from` to `#to`: the current chunk. If a member began in earlier chunks, that member's bytes come first. */
  #text: Buffer = Buffer.alloc(0);
  #from = 0;
  #to = 0;
  #isJson = true;

  constructor(chunks: readonly Buffer[] = []) {
    for (const chunk of chunks) this.add(chunk);
  }

  add(chunk: Buffer): void {
    if (!this.#isJson) return;
    this.#text = inOne(this.#text.length === 0 ? [chunk] : [this.#text, chunk]);
    this.#try(() => this.#scanner.feed(chunk));
    this.#readMembers();
    this.#to += chunk.length;
    const { openSince = this.#to } = this.#members;
    const isTooLong = this.#to - openSince > MAX_MEMBER_BYTES;
    const from = isTooLong ? this.#to : openSince;
    this.#text = this.#text.subarray(from - this.#from);
    this.#from = from;
  }

  /** Returns the members that were found, once all chunks were added; undefined if the answer is no JSON object. */
  read(): unknown {
    this.#try(() => this.#scanner.finish());
    const { isObject, heads } = this.#members;
    return this.#isJson && isObject ? { ...this.#found, ...(heads && { output: heads.found }) } : undefined;
  }

  #readMembers(): void {
    for (const name of MEMBERS) {
      const place = this.#members.places.get(name);
      if (place === undefined || place.end <= this.#to || place.valueStart < this.#from) continue;
      const text = this.#text.toString('utf8', place.valueStart - this.#from, place.end - this.#from);
      this.#found[name] = parseJson(text);
    }
  }

  #try(look: () => void): void {
    if (!this.#isJson) return;
    try {
      look();
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      this.#isJson = false;
    }
  }
}

/** Finds the members of an answer, and the types of the items in its `output`. */
class AnswerMembers extends TopLevelMembers {
  heads: ItemHeads | undefined;
  /** Where the key of the current member ends; undefined if the member is not read. */
  openSince: number | undefined;

  override open(depth: number, isObject: boolean, token: JsonToken): void {
    super.open(depth, isObject, token);
    if (depth === 2) this.heads = this.name === 'output' && !isObject ? new ItemHeads() : this.heads;
    this.#ofOutput?.open(depth - 1, isObject);
  }

  override close(depth: number, token: JsonToken): void {
    super.close(depth, token);
    if (depth === 2) this.openSince = undefined;
    this.#ofOutput?.close(depth - 1);
  }

  override key(depth: number, token: JsonToken): void {
    super.key(depth, token);
    if (depth === 1) this.openSince = MEMBERS.has(this.name) ? token.end : undefined;
    else this.#ofOutput?.key(depth - 1, token);
  }

  override scalar(depth: number, firstByte: number, token: JsonToken): void {
    super.scalar(depth, firstByte, token);
    if (depth === 1) this.openSince = undefined;
    else this.#ofOutput?.scalar(depth - 1, firstByte, token);
  }

  get #ofOutput(): ItemHeads | undefined {
    return this.name === 'output' ? this.heads : undefined;
  }
}

/** Returns whether a body is an answer, although its HTTP status means success. Some upstreams then report an error, or send something else entirely. */
export function isAnswer(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return false;
  const { error, type } = body as { error?: unknown; type?: unknown };
  return (error === undefined || error === null) && type !== 'error';
}
