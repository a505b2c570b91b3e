import { expect } from 'chai';
import { nfkcGrowth } from '../../../policies/model-request/nfkc-growth';
import { seeded } from '../../support/random';

/** The characters that NFKC may write otherwise, and marks, which decide what becomes of them. */
const CHANGED = Array.from({ length: 0x30000 }, (_, code) => String.fromCodePoint(code)).filter(
  (character) => character.normalize('NFKD') !== character,
);
const MARKS = Array.from({ length: 0x70 }, (_, at) => String.fromCharCode(0x300 + at));
const POOLS = [CHANGED, MARKS, CHANGED, MARKS, [...'aeIouAs1 ']];

function growthOf(json: string, pieceBytes = json.length): number {
  const bytes = Buffer.from(json);
  const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, at) =>
    bytes.subarray(at * pieceBytes, (at + 1) * pieceBytes),
  );
  return nfkcGrowth(pieces);
}

function escaped(text: string): string {
  return Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
    '',
  );
}

describe('the growth of a text by NFKC', function () {
  this.timeout(60_000);

  it('is estimated high enough for each character, written directly or escaped', () => {
    const isCovered = (json: string, character: string) =>
      Buffer.byteLength(json) + growthOf(json) >= Buffer.byteLength(character.normalize('NFKC'));
    const small = CHANGED.filter((each) => !isCovered(each, each) || !isCovered(escaped(each), each));
    expect(small.map(escaped)).to.deep.equal([]);
  });

  it('is at least the real growth, for characters and marks in any order, in pieces of any length', () => {
    const random = seeded(61);
    for (let at = 0; at < 10_000; at += 1) {
      const text = Array.from({ length: 1 + random.below(8) }, () => random.pick(random.pick(POOLS))).join('');
      const most = Buffer.byteLength(text.normalize('NFKC'));
      const bound = Buffer.byteLength(text) + growthOf(text, 1 + random.below(5));
      expect(bound, escaped(text)).to.be.at.least(most);
      expect(escaped(text).length + growthOf(escaped(text), 1 + random.below(9)), escaped(text)).to.be.at.least(most);
    }
  });

  it('is 0 for text that NFKC does not lengthen, and for an escaped backslash before a u', () => {
    expect(growthOf('"Plain text, Français, Русский, 中文, が, 한국어 — “quoted” …"')).to.equal(0);
    expect(growthOf('"C:\\\\ufdfa"')).to.equal(0);
    expect(growthOf('"\\\\\\ufdfa"')).to.equal(27);
  });

  it('is 0 for bytes that are not valid UTF-8 characters', () => {
    expect(
      nfkcGrowth([Buffer.from([0xff, 0xf8, 0x80, 0x80, 0x80, 0x80, 0xc2, 0x41, 0xf7, 0xbf, 0xbf, 0xbf])]),
    ).to.equal(0);
  });
});
