import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { BodyEdit } from '../../../core/catalog/upstream';
import { findMembers } from '../../../core/http/json-members';
import { applyBodyEdits } from '../../../core/wire/body-edits';

function bodyOf(text: string, pieceBytes = 1_000_000) {
  // Does not use Buffer's pool, so that the memory shows where bytes come from.
  const bytes = Buffer.alloc(Buffer.byteLength(text));
  bytes.write(text);
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) chunks.push(bytes.subarray(at, at + pieceBytes));
  const members = findMembers(chunks);
  assert(members);
  return { chunks, byteLength: bytes.length, members };
}

function edit(text: string, edits: readonly BodyEdit[], pieceBytes?: number): string {
  const edited = applyBodyEdits(bodyOf(text, pieceBytes), edits);
  const bytes = Buffer.concat([...edited.chunks]);
  assert.equal(bytes.length, edited.byteLength);
  return bytes.toString();
}

const TABLE: readonly [string, string, readonly BodyEdit[], string][] = [
  ['drops a middle member', '{"a":1,"b":2,"c":3}', [{ member: 'b', drop: true }], '{"a":1,"c":3}'],
  ['drops the last member', '{"a":1,\n"b":2\n}', [{ member: 'b', drop: true }], '{"a":1\n}'],
  ['drops the only member', '{ "a":1 }', [{ member: 'a', drop: true }], '{  }'],
  ['appends', '{"a":1 }', [{ member: 'b', set: '2' }], '{"a":1,"b":2 }'],
  ['appends to an empty object', ' { } ', [{ member: 'b', set: '2' }], ' {"b":2 } '],
  [
    'drops neighbours at the end and appends',
    '{"a":1 , "b":2,"c":3}',
    [
      { member: 'c', drop: true },
      { member: 'b', drop: true },
      { member: 'd', set: '4' },
    ],
    '{"a":1 ,"d":4}',
  ],
  ['keeps repeated unknown members', '{"x":1,"p":2,"x":3}', [{ member: 'p', drop: true }], '{"x":1,"x":3}'],
  ['finds an escaped key', '{"mod\\u0065l":"x"}', [{ member: 'model', set: '"y"' }], '{"mod\\u0065l":"y"}'],
  [
    'keeps big integers, escapes and order',
    '{"seed":123456789012345678901234567890,"z":"\\u0041\\/","model":"x","a":1.0}',
    [{ member: 'model', set: '"y"' }],
    '{"seed":123456789012345678901234567890,"z":"\\u0041\\/","model":"y","a":1.0}',
  ],
];

describe('body edits', () => {
  for (const [name, before, edits, after] of TABLE) {
    it(name, () => {
      for (const pieceBytes of [1, 3, 1_000]) assert.equal(edit(before, edits, pieceBytes), after);
    });
  }

  it('give the same JSON as editing the parsed object, for any object, any edits and any chunks', () => {
    const keys = fc.constantFrom('a', 'b', 'c', 'd', 'é"', '__proto__');
    const edits = fc.array(
      fc.oneof(
        fc.record({ member: keys, set: fc.jsonValue({ maxDepth: 1 }).map((value) => JSON.stringify(value)) }),
        fc.record({ member: keys, drop: fc.constant(true as const) }),
      ),
      { maxLength: 6 },
    );
    const members = fc.uniqueArray(fc.tuple(keys, fc.jsonValue({ maxDepth: 2 })), { selector: ([key]) => key });
    const space = fc.constantFrom('', ' ', '\n\t');
    fc.assert(
      fc.property(
        members,
        edits,
        fc.array(space, { minLength: 9, maxLength: 9 }),
        fc.integer({ min: 1, max: 30 }),
        (list, asked, spaces, size) => {
          const written = list.map(
            ([key, value], at) =>
              `${spaces[at] ?? ''}${JSON.stringify(key)}:${JSON.stringify(value)}${spaces[at + 1] ?? ''}`,
          );
          const text = `${spaces[7]}{${spaces[8]}${written.join(',')}}`;
          const expected = new Map<string, string>(list.map(([key, value]) => [key, JSON.stringify(value)]));
          for (const one of asked) {
            if ('set' in one) expected.set(one.member, one.set);
            else expected.delete(one.member);
          }
          // Only the last of two edits of one member counts: a member that is dropped and then set keeps its position.
          const after = edit(text, asked, size);
          const found = JSON.parse(after) as Record<string, unknown>;
          assert.deepEqual(Object.keys(found).sort(), [...expected.keys()].sort());
          for (const [key, value] of expected) {
            assert.deepEqual(Object.getOwnPropertyDescriptor(found, key)?.value, JSON.parse(value));
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('copy no untouched bytes of the body', () => {
    const body = bodyOf(`{"model":"x","messages":["${'y'.repeat(500)}"]}`);
    const edited = applyBodyEdits(body, [{ member: 'model', set: '"z"' }]);
    const [source] = body.chunks;
    const kept = edited.chunks.filter((chunk) => chunk.buffer === source?.buffer);
    assert.equal(
      kept.reduce((sum, chunk) => sum + chunk.length, 0),
      body.byteLength - '"x"'.length,
    );
    assert.equal(applyBodyEdits(body, [{ member: 'priority', drop: true }]).chunks, body.chunks);
  });
});
