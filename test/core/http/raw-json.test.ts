import assert from 'node:assert/strict';
import fc from 'fast-check';
import { scanWhole } from '../../../core/http/json-scanner';
import { parseRaw, rawTextOf, repeatsName } from '../../../core/http/raw-json';
import { JsonTree } from '../../../core/wire/json-tree';

/** Builds a value from what a scanner reads, as for a large body. */
function built(bytes: Buffer): unknown {
  const tree = new JsonTree(bytes);
  if (!scanWhole([bytes], tree)) return undefined;
  for (const { set, start, end } of tree.longTexts) set(JSON.parse(bytes.toString('utf8', start - 1, end + 1)));
  return tree.root;
}

const WAYS = { parsed: (bytes: Buffer) => parseRaw(bytes), built };

/** Lists the objects that keep their text, in the order of their members; `twice` for one in which a name stands twice. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = rawTextOf(value) ?? (repeatsName(value) ? 'twice' : undefined);
  return [...(own === undefined ? [] : [own]), ...Object.values(value).flatMap(textsIn)];
}

const LONG = JSON.stringify('x'.repeat(5_000));

/** A text, and those that its objects keep. */
const ROWS: readonly (readonly [string, ...string[]])[] = [
  ['{"input": {"a" : 1.0,"2":1,"1":12345678901234567890}}', '{"a" : 1.0,"2":1,"1":12345678901234567890}'],
  ['[{"arguments":{}},{"args":{"input":{"x":1}}},[{"schema":[{"input":{ }}]}]]', '{}', '{"input":{"x":1}}', '{ }'],
  ['{"\\u0069nput":{"\\u0061":"é"}}', '{"\\u0061":"é"}'],
  ['{"input":[{"a":1}],"text":"\\"input\\":{}","x":{"input":5}}'],
  ['{"input":{"a":1,"a":2}}', 'twice'],
  ['{"input":{"a":[{"b":{"c":1,"c":{"d":1}}}]}}', 'twice'],
  ['{"input":{"a":1},"input":{"b":2}}', '{"b":2}'],
  ['{"a":[{"input":{"x":1}}],"b":{"input":{"y":2}},"a":[{"input":{"z":3}}]}', '{"z":3}', '{"y":2}'],
  ['{"a":{"input":{"x":1}},"a":[{"input":{"y":2}}]}', '{"y":2}'],
  ['{"a":{"input":{"x":1}},"a":{"b":{}}}'],
  ['{"input":{"__proto__":{"a":1},"constructor":1}}', '{"__proto__":{"a":1},"constructor":1}'],
  ['{"__proto__":{"input":{"a":1}},"toString":{"input":{}}}', '{"a":1}', '{}'],
  [`{"a":${LONG},"a":{"input":{"b":${LONG}}}}`, `{"b":${LONG}}`],
];

describe('parsed JSON that keeps the original text of tool inputs and schemas', () => {
  for (const [way, read] of Object.entries(WAYS)) {
    for (const [text, ...texts] of ROWS)
      it(`has the original texts of the inputs and schemas in ${text.slice(0, 100)}, ${way}`, () => {
        const value = read(Buffer.from(text));
        assert.deepEqual(value, JSON.parse(text));
        assert.deepEqual(textsIn(value), texts);
      });

    it(`equals the result of JSON.parse, ${way}, and each input or schema keeps the text that it was parsed from`, () => {
      const names = fc.constantFrom('input', 'arguments', 'schema', 'a', '1', '__proto__', 'é"');
      const { json } = fc.letrec<{ json: string }>((tie) => ({
        json: fc.oneof(
          { maxDepth: 5 },
          fc.constantFrom('1', '1.0', '"input"', 'null', '"\\u00e9"'),
          fc.array(tie('json'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
          fc
            .array(fc.tuple(names, tie('json')), { maxLength: 4 })
            .map((members) => `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join()}}`),
        ),
      }));
      fc.assert(
        fc.property(json, (text) => {
          const value = read(Buffer.from(text));
          assert.deepEqual(value, JSON.parse(text));
          for (const kept of textsIn(value)) assert(kept === 'twice' || text.includes(kept));
          assert.equal(read(Buffer.from(`${text}]`)), undefined);
        }),
        { numRuns: 1_000 },
      );
    });
  }
});
