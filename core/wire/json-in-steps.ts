import { setImmediate as nextTurn } from 'node:timers/promises';
import { BACKSLASH } from '../http/json-bytes';
import { JsonScanner } from '../http/json-scanner';
import { parseRaw, rawTextOf } from '../http/raw-json';
import type { RequestBody } from './body-edits';
import { JsonTree, type NumberReader } from './json-tree';

/** Bodies above this size are written in steps of less than 20 ms each, and other calls are served between two steps. */
export const AT_ONCE_BYTES = 512 * 1_024;
/**
 * How many bytes of a body are parsed or written in one step. Larger bodies are parsed in steps, too. Parsing them as one string would be
 * no cheaper, because V8 collects large strings separately.
 */
export const PIECE_BYTES = 128 * 1_024;

const LETTER_U = 0x75;

/** Parses a body that is known to be valid JSON. Tool inputs and schemas stay unparsed text. */
export async function parseInSteps({
  chunks,
  byteLength,
}: Pick<RequestBody, 'chunks' | 'byteLength'>): Promise<unknown> {
  const bytes = Buffer.concat(chunks, byteLength);
  return byteLength <= PIECE_BYTES ? parseRaw(bytes) : parseExactly(bytes);
}

/** Parses a JSON text in steps. @throws JsonError if it is not JSON */
export async function parseExactly(bytes: Buffer, readNumber?: NumberReader): Promise<unknown> {
  const tree = new JsonTree(bytes, readNumber);
  const scanner = new JsonScanner(tree);
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    scanner.feed(bytes.subarray(at, at + PIECE_BYTES));
    await nextTurn();
  }
  scanner.finish();
  for (const text of tree.longTexts) text.set(await decode(bytes.subarray(text.start, text.end)));
  return tree.root;
}

/** Decodes the raw bytes of a JSON string, in pieces that split no escape and no character. */
async function decode(raw: Buffer): Promise<string> {
  let text = '';
  for (let from = 0; from < raw.length; ) {
    const to = endOfPiece(raw, Math.min(from + PIECE_BYTES, raw.length), from);
    const piece = raw.subarray(from, to);
    const plain = piece.toString('utf8');
    text += piece.includes(BACKSLASH) ? (JSON.parse(`"${plain}"`) as string) : plain;
    from = to;
    await nextTurn();
  }
  return text;
}

/** Returns where a part of a JSON string can end near `to`. If an escape crosses `to`, the part ends after it; a character that crosses `to` is left out. */
function endOfPiece(raw: Buffer, to: number, from: number): number {
  let at = from;
  for (;;) {
    const backslash = raw.indexOf(BACKSLASH, at);
    if (backslash === -1 || backslash >= to) break;
    at = backslash + (raw[backslash + 1] === LETTER_U ? 6 : 2);
    if (at >= to) return at;
  }
  let end = to;
  while (end < raw.length && ((raw[end] as number) & 0xc0) === 0x80) end -= 1;
  return end;
}

/** Writes a value as JSON in steps. Other calls are served between them. */
export async function stringifyInSteps(value: unknown): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  let waiting = '';
  for (const text of textsOf(value)) {
    waiting += text;
    if (waiting.length < PIECE_BYTES) continue;
    pieces.push(Buffer.from(waiting));
    waiting = '';
    await nextTurn();
  }
  if (waiting !== '') pieces.push(Buffer.from(waiting));
  return pieces;
}

/** Yields the JSON of a value in short texts. */
function* textsOf(value: unknown): Generator<string> {
  if (typeof value === 'string' && value.length > PIECE_BYTES) yield* longText(value);
  else if (typeof value !== 'object' || value === null) yield JSON.stringify(value);
  else {
    const raw = rawTextOf(value);
    if (raw !== undefined) yield raw;
    else yield* Array.isArray(value) ? listOf(value) : objectOf(value);
  }
}

function* listOf(list: readonly unknown[]): Generator<string> {
  yield '[';
  for (const [at, each] of list.entries()) {
    if (at > 0) yield ',';
    yield* textsOf(each === undefined ? null : each);
  }
  yield ']';
}

function* objectOf(object: object): Generator<string> {
  let before = '{';
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    yield* textsOf(value);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

/** Splits a long text between two characters, because half of a surrogate pair would be escaped. */
function* longText(text: string): Generator<string> {
  yield '"';
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PIECE_BYTES, text.length);
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to -= 1;
    yield JSON.stringify(text.slice(from, to)).slice(1, -1);
    from = to;
  }
  yield '"';
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}
