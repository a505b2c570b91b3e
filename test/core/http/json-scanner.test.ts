import assert from 'node:assert/strict';
import fc from 'fast-check';
import { findMembers, sliceChunks, TopLevelMembers } from '../../../core/http/json-members';
import {
  JsonError,
  type JsonObserver,
  JsonScanner,
  type JsonToken,
  MAX_JSON_DEPTH,
} from '../../../core/http/json-scanner';
import { type JsonWord, knownWord, wordIn } from '../../../core/http/json-words';

/** Rebuilds the value from the scanner's events, to compare it with JSON.parse. */
class Rebuilder implements JsonObserver {
  value: unknown;
  readonly #stack: { container: Record<string, unknown> | unknown[]; key: string }[] = [];

  open(_depth: number, isObject: boolean): void {
    this.#stack.push({ container: isObject ? {} : [], key: '' });
  }

  close(): void {
    this.#put(this.#stack.pop()?.container);
  }

  key(_depth: number, token: JsonToken): void {
    const top = this.#stack.at(-1);
    assert(top);
    top.key = token.text() ?? assert.fail('a long key');
  }

  scalar(_depth: number, firstByte: number, token: JsonToken): void {
    const text = token.text() ?? assert.fail('a long value');
    this.#put(firstByte === 0x22 ? text : JSON.parse(text));
  }

  #put(value: unknown): void {
    const top = this.#stack.at(-1);
    if (top === undefined) this.value = value;
    else if (Array.isArray(top.container)) top.container.push(value);
    else Object.defineProperty(top.container, top.key, { value, enumerable: true, configurable: true, writable: true });
  }
}

function scan(text: string | Buffer, pieceBytes = Number.POSITIVE_INFINITY): unknown {
  const rebuilder = new Rebuilder();
  const scanner = new JsonScanner(rebuilder);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) scanner.feed(bytes.subarray(at, at + pieceBytes));
  scanner.finish();
  return rebuilder.value;
}

const REFUSED = [
  '',
  ' ',
  '{',
  '[',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{,}',
  '[1,]',
  '[,1]',
  '[1 2]',
  '{"a":1 "b":2}',
  '{a:1}',
  "{'a':1}",
  '01',
  '-',
  '+1',
  '.5',
  '1.',
  '1e',
  '1e+',
  '1.e1',
  '0x10',
  'NaN',
  'Infinity',
  'tru',
  'trux',
  'nul',
  'True',
  '"',
  '"\\"',
  '"\\x"',
  '"\\u12g4"',
  '"\\u12"',
  '"a\nb"',
  '"a\u0000b"',
  '"a\tb"',
  '{}{}',
  '1 2',
  '[]]',
  '[}',
  '{]',
  '{"a":1]',
  '\ufeff{}',
  '/**/{}',
  '{"a":1}x',
  '"a" "b"',
];

describe('the JSON scanner', () => {
  it('returns the same value as JSON.parse, even if the text is split at any byte', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 1, max: 7 }), (text, pieceBytes) => {
        assert.deepEqual(scan(text, pieceBytes), JSON.parse(text));
        assert.deepEqual(scan(text), JSON.parse(text));
      }),
    );
  });

  it('keeps escapes, white space, large numbers and surrogates unchanged', () => {
    const text =
      ' { "mod\\u0065l\\n\\/" : [ -0 , 1.5E+10 , 12e-3 ,\t"\\ud83d\\ude00 é" , true,false,null , {} , [] ] }\r\n';
    assert.deepEqual(scan(text, 1), JSON.parse(text));
  });

  for (const text of REFUSED) {
    it(`rejects ${JSON.stringify(text)}, as JSON.parse does`, () => {
      assert.throws(() => JSON.parse(text), SyntaxError);
      assert.throws(() => scan(text), JsonError);
      assert.throws(() => scan(text, 1), JsonError);
    });
  }

  it('accepts and rejects the same damaged texts as JSON.parse', () => {
    const damaged = fc
      .tuple(fc.json({ maxDepth: 4 }), fc.nat(), fc.constantFrom(...'{}[],:"\\0e-.t \n'))
      .map(([text, at, byte]) => text.slice(0, at % text.length) + byte + text.slice((at % text.length) + 1));
    fc.assert(
      fc.property(damaged, fc.constantFrom(3, 700, Number.POSITIVE_INFINITY), (short, pieceBytes) => {
        // Long chunks are looked at several bytes at once.
        const text = pieceBytes === 3 ? short : `[${short},"${'x'.repeat(600)}",${short}]`;
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          assert.throws(() => scan(text, pieceBytes), JsonError);
          return;
        }
        assert.deepEqual(scan(text, pieceBytes), expected);
      }),
      { numRuns: 3_000 },
    );
  });

  it('ends each string at its quote, backslash or control character, at any position in a long chunk', () => {
    for (let at = 0; at < 40; at += 1) {
      const before = 'é'.repeat(at % 3) + 'x'.repeat(at);
      for (const [byte, after] of [
        ['"', ',"'],
        ['\\', 'n'],
        ['\\', 'u00e9'],
        ['\\', 'x'],
        ['\n', ''],
        ['\u001f', ''],
        [' ', '!'],
        ['\u007f', ''],
      ]) {
        const text = `["${before}${byte}${after}","${'y'.repeat(600)}"]`;
        const read = (how: (text: string) => unknown) => {
          try {
            return how(text);
          } catch {
            return 'refused';
          }
        };
        assert.deepEqual(read(scan), read(JSON.parse), JSON.stringify(text));
      }
    }
  });

  it('returns the same object for a member name with and without escapes, whether the name arrives whole or in pieces', () => {
    const known = knownWord('cache_control');
    const words: (JsonWord | undefined)[] = [];
    const observer: JsonObserver = {
      open: () => undefined,
      close: () => undefined,
      key: (_depth, token) => words.push(token.word()),
      scalar: (_depth, _firstByte, token) => assert(token.is(known)),
    };
    const bytes = Buffer.from('{"cache_control":"cache\\u005fcontrol","cach\\u0065_control":"cache_control"}');
    for (const pieceBytes of [1, 9, 1_000]) {
      const scanner = new JsonScanner(observer);
      for (let at = 0; at < bytes.length; at += pieceBytes) scanner.feed(bytes.subarray(at, at + pieceBytes));
    }
    assert.deepEqual([...new Set(words)], [known]);
  });

  it('keeps the member names that code has registered, however many other names it reads', () => {
    const known = knownWord('role');
    for (let at = 0; at < 20_000; at += 1) {
      const name = `name-${at}`;
      assert.equal(wordIn(Buffer.from(name), 0, name.length).text, name);
    }
    const [early, late] = [known, knownWord('name-19999')];
    assert.equal(wordIn(Buffer.from('"role"'), 1, 5), early);
    assert.equal(wordIn(Buffer.from('name-19999'), 0, 10), late);
  });

  it('rejects the 257th nesting level at its exact byte, however much text follows', () => {
    scan('['.repeat(MAX_JSON_DEPTH) + ']'.repeat(MAX_JSON_DEPTH));
    const scanner = new JsonScanner(new TopLevelMembers());
    assert.throws(() => scanner.feed(Buffer.alloc(1_000_000, '[')), { name: 'JsonError', offset: MAX_JSON_DEPTH });
  });

  it('reports only the first bytes of a token longer than 4 KiB', () => {
    const heads: (string | undefined)[] = [];
    const observer: JsonObserver = {
      open: () => undefined,
      close: () => undefined,
      key: () => undefined,
      scalar: (_depth, _firstByte, token) => heads.push(token.text(), token.head(6), `${token.end - token.start}`),
    };
    for (const pieceBytes of [1, 1_000, 100_000]) {
      heads.length = 0;
      const bytes = Buffer.from(`["${'x'.repeat(9_000)}"]`);
      const scanner = new JsonScanner(observer);
      for (let at = 0; at < bytes.length; at += pieceBytes) scanner.feed(bytes.subarray(at, at + pieceBytes));
      assert.deepEqual(heads, [undefined, '"xxxxx', '9002']);
    }
  });
});

describe('the positions of top-level members', () => {
  it("select each member's value exactly as it was written", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
        fc.integer({ min: 1, max: 9 }),
        (object, size) => {
          const text = Buffer.from(JSON.stringify(object, null, size % 3));
          const chunks: Buffer[] = [];
          for (let at = 0; at < text.length; at += size) chunks.push(text.subarray(at, at + size));
          const places = findMembers(chunks);
          assert(places);
          assert.deepEqual([...places.keys()].sort(), Object.keys(object).sort());
          for (const [key, place] of places) {
            const value = sliceChunks(chunks, place.valueStart, place.end).toString();
            assert.deepEqual(JSON.parse(value), JSON.parse(JSON.stringify(object[key])));
            const member = sliceChunks(chunks, place.start, place.end).toString();
            assert.deepEqual(Object.keys(JSON.parse(`{${member}}`)), [key]);
          }
        },
      ),
    );
  });

  it('are found by keys with decoded escapes, and a repeated key is reported', () => {
    const members = new TopLevelMembers(new Set(['model']));
    const scanner = new JsonScanner(members);
    scanner.feed(Buffer.from('{"model":1,"x":{"model":2},"x":3,"mod\\u0065l":4}'));
    scanner.finish();
    assert.equal(members.repeated, 'model');
    assert.deepEqual([...members.places.keys()], ['model', 'x']);
  });
});
