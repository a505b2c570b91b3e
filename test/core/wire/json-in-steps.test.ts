import { expect } from 'chai';
import fc from 'fast-check';
import { parseInSteps, stringifyInSteps } from '../../../core/wire/json-in-steps';

describe('parsing and writing a large body piece by piece', () => {
  it('gives the same result as JSON.parse', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 5 }), fc.string({ unit: 'grapheme' }), async (value, text) => {
        const filler = `${'ä"\\\n x😀'.repeat(100_000)}${'b'.repeat(300_000)}${'\\u00e9é'.repeat(60_000)}`;
        const json = JSON.stringify({
          value,
          text,
          filler,
          ['__proto__']: 1,
          numbers: [1e3, -0.5, 12345678901234567890n.toString()],
        });
        const bytes = Buffer.from(json);
        expect(bytes.length).to.be.above(512 * 1_024);
        const cut = bytes.length >> 1;
        const chunks = [bytes.subarray(0, cut), bytes.subarray(cut)];
        const parsed = await parseInSteps({ chunks, byteLength: bytes.length });
        expect(parsed).to.deep.equal(JSON.parse(json));
        expect(Buffer.concat(await stringifyInSteps(parsed)).toString()).to.equal(json);
      }),
      { numRuns: 10 },
    );
  });

  it('lets other work run between the pieces', async () => {
    const json = Buffer.from(
      JSON.stringify({ list: Array.from({ length: 200_000 }, (_, at) => ({ at, text: 'text' })) }),
    );
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 0);
    await parseInSteps({ chunks: [json], byteLength: json.length });
    clearInterval(timer);
    expect(turns).to.be.above(10);
  });
});
