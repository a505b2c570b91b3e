import { setImmediate as nextTurn } from 'node:timers/promises';
import { PIECE_BYTES } from './parse-slowly';

/** Writes a value as JSON in steps. Other calls are served between them. */
export async function writeSlowly(value: unknown): Promise<Buffer[]> {
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
  else if (Array.isArray(value)) yield* listOf(value);
  else yield* objectOf(value);
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

/** Splits between two characters, because half of a surrogate pair would be escaped. */
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
