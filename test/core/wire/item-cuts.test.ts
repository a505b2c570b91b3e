import { expect } from 'chai';
import fc from 'fast-check';
import { applyBodyEdits, type ItemPlace, planItemCuts } from '../../../core/wire/body-edits';

describe('removing items from JSON arrays', () => {
  it('leaves valid JSON without these items, for any text between them and any chunks', () => {
    const space = fc.constantFrom('', ' ', '\n', '\t ');
    const item = fc.record({ value: fc.constantFrom('1', '"a"', '{"b":[1,2]}', '[]'), isCut: fc.boolean(), space });
    fc.assert(
      fc.property(
        fc.array(fc.array(item, { maxLength: 6 }), { minLength: 1, maxLength: 3 }),
        fc.nat(7),
        (lists, size) => {
          const cuts: ItemPlace[] = [];
          let text = '[';
          for (const [at, list] of lists.entries()) {
            text += at === 0 ? '[' : ',[';
            for (const [index, each] of list.entries()) {
              if (index > 0) text += ',';
              text += each.space;
              if (each.isCut) cuts.push({ start: text.length, end: text.length + each.value.length });
              text += each.value + each.space;
            }
            text += ']';
          }
          text += ']';
          const chunks = chunksOf(Buffer.from(text), size + 1);
          const body = { chunks, byteLength: text.length, members: new Map() };
          const cut = Buffer.concat([...applyBodyEdits(body, [], planItemCuts(chunks, cuts)).chunks]).toString();
          const kept = lists.map((list) =>
            list.filter(({ isCut }) => !isCut).map(({ value }): unknown => JSON.parse(value)),
          );
          expect(JSON.parse(cut)).to.deep.equal(kept);
        },
      ),
    );
  });
});

function chunksOf(bytes: Buffer, size: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
  return chunks;
}
