import type { Random } from '../support/random';

/** Bytes and words that parsers often mishandle. */
const TOKENS: readonly Buffer[] = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '%00',
  '%2f',
  '..',
  '../',
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  '\\u0000',
  '\\ud800',
  'null',
  'NaN',
  '-0',
  '1e309',
  '-1',
  '9007199254740993',
  'true',
  '__proto__',
  'constructor',
  'data: ',
  'event: ',
  '[DONE]',
  'HTTP/1.1 ',
  'Transfer-Encoding: chunked\r\n',
  'Content-Length: 5\r\n',
  'Expect: 100-continue\r\n',
  'Upgrade: websocket\r\n',
  'Host: x\r\n',
  '\u{10ffff}',
].map((text) => Buffer.from(text));

const MAX_REPEAT_LENGTH = 4_096;

/** Returns a sample with up to eight changes: bytes flipped, removed, doubled or repeated, or an inserted token. */
export function mutateBytes(random: Random, sample: Buffer): Buffer {
  let bytes = sample;
  for (let change = random.below(9); change > 0; change -= 1) bytes = changeOnce(random, bytes);
  return bytes;
}

function changeOnce(random: Random, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  const end = Math.min(bytes.length, at + 1 + random.below(16));
  const slice = bytes.subarray(at, end);
  const put = (...middle: readonly Buffer[]) => Buffer.concat([bytes.subarray(0, at), ...middle, bytes.subarray(end)]);
  switch (random.below(5)) {
    case 0:
      return put(Buffer.from(slice.map((byte) => byte ^ (1 << random.below(8)))));
    case 1:
      return put();
    case 2:
      return put(slice, slice);
    case 3:
      return put(Buffer.alloc(1 + random.below(MAX_REPEAT_LENGTH), random.below(256)));
    default:
      return put(random.pick(TOKENS), slice);
  }
}

/** Splits the bytes into up to ten pieces, at any position. */
export function cut(random: Random, bytes: Buffer): Buffer[] {
  const places = Array.from({ length: random.below(10) }, () => random.below(bytes.length + 1)).sort((a, b) => a - b);
  return [0, ...places].map((start, index) => bytes.subarray(start, places[index] ?? bytes.length));
}

const STRANGE: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  '',
  ' ',
  '\0',
  '\ud800',
  'a'.repeat(5_000),
  '../../etc/passwd',
  '=1+1',
  [],
  {},
  [[[[[[[[]]]]]]]],
  Array.from({ length: 2_000 }, () => 0),
  Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, n])),
];

/** Returns a JSON value with one part replaced, removed, or doubled under another name. */
export function mutateJson(random: Random, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || random.below(4) === 0) return random.pick(STRANGE);
  if (Array.isArray(value)) {
    const at = random.below(value.length + 1);
    return [...value.slice(0, at), mutateJson(random, value[at]), ...value.slice(at + random.below(2))];
  }
  const entries = Object.entries(value);
  const [name, member] = entries.length === 0 ? ['x', null] : random.pick(entries);
  switch (random.below(4)) {
    case 0:
      return Object.fromEntries(entries.filter(([each]) => each !== name));
    case 1:
      return { ...value, [random.pick(['__proto__', 'balance', 'role', name.toUpperCase(), 'x'.repeat(300)])]: member };
    default:
      return { ...value, [name]: mutateJson(random, member) };
  }
}
