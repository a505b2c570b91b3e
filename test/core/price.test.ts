import { expect } from 'chai';
import * as fc from 'fast-check';
import { costOf, dearestCost, type Price, totalInputTokens } from '../../core/price';
import { UNKNOWN_USAGE, type Usage } from '../../core/usage';
import { samplePrice } from '../support/catalog-samples';

const e8 = fc.bigInt({ min: 0n, max: 1_000_000_000_000n });
const tier = fc.record({ inputE8: e8, outputE8: e8, cacheWriteE8: e8, cacheWrite1hE8: e8, cacheReadE8: e8 });
const price: fc.Arbitrary<Price> = fc
  .tuple(tier, fc.option(fc.tuple(tier, fc.integer({ min: 1, max: 1_000_000 })), { nil: undefined }))
  .map(([base, above]) => ({
    ...base,
    above: above === undefined ? undefined : { ...above[0], tokens: above[1] },
  }));
const count = fc.option(fc.integer({ min: 0, max: 2_000_000 }), { nil: undefined });
const usage: fc.Arbitrary<Usage> = fc.record({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  cacheWrite1hTokens: count,
});

/** The cost as a fraction over one million, nothing rounded. */
function exactNumerator(used: Usage, charged: Price): bigint {
  const total = BigInt(totalInputTokens(used));
  const inForce = charged.above !== undefined && total > BigInt(charged.above.tokens) ? charged.above : charged;
  const terms: [number | undefined, bigint][] = [
    [used.inputTokens, inForce.inputE8],
    [used.outputTokens, inForce.outputE8],
    [used.cacheReadTokens, inForce.cacheReadE8],
    [used.cacheWriteTokens, inForce.cacheWriteE8],
    [used.cacheWrite1hTokens, inForce.cacheWrite1hE8],
  ];
  return terms.reduce((sum, [tokens = 0, each]) => sum + BigInt(tokens) * each, 0n);
}

describe('price', () => {
  it('costs the exact sum, rounded up once', () => {
    void fc.assert(
      fc.property(usage, price, (used, charged) => {
        const exact = exactNumerator(used, charged);
        const cost = costOf(used, charged);
        expect(cost * 1_000_000n >= exact).to.equal(true);
        expect((cost - 1n) * 1_000_000n < exact).to.equal(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('never costs more than was held while the tokens stay within the bounds', () => {
    void fc.assert(
      fc.property(usage, price, fc.array(price, { maxLength: 3 }), (used, charged, others) => {
        const held = dearestCost(totalInputTokens(used), used.outputTokens ?? 0, [charged, ...others]);
        expect(costOf(used, charged) <= held).to.equal(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('costs more, never less, with every further token', () => {
    void fc.assert(
      fc.property(usage, price, (used, charged) => {
        const flat = { ...charged, above: undefined };
        const more = { ...used, outputTokens: (used.outputTokens ?? 0) + 1 };
        expect(costOf(more, flat) >= costOf(used, flat)).to.equal(true);
      }),
    );
  });

  it('charges three dollars for a million tokens at three dollars a million', () => {
    const charged = samplePrice(300_000_000n, 1_500_000_000n);
    expect(costOf({ ...UNKNOWN_USAGE, inputTokens: 1_000_000 }, charged)).to.equal(300_000_000n);
    expect(costOf({ ...UNKNOWN_USAGE, inputTokens: 1, outputTokens: 1 }, charged)).to.equal(1_800n);
  });

  it('rounds a fraction of the unit up to one unit', () => {
    expect(costOf({ ...UNKNOWN_USAGE, inputTokens: 1 }, samplePrice(1n, 0n))).to.equal(1n);
    expect(costOf({ ...UNKNOWN_USAGE, inputTokens: 1, outputTokens: 1 }, samplePrice(1n, 1n))).to.equal(1n);
    expect(costOf(UNKNOWN_USAGE, samplePrice(1n, 1n))).to.equal(0n);
  });

  it('takes the higher tier for the whole call only once its input is above the threshold', () => {
    const charged = samplePrice(1_000_000n, 0n, { above: { ...samplePrice(2_000_000n, 0n), tokens: 100 } });
    expect(costOf({ ...UNKNOWN_USAGE, inputTokens: 100 }, charged)).to.equal(100n);
    expect(costOf({ ...UNKNOWN_USAGE, inputTokens: 101 }, charged)).to.equal(202n);
    expect(costOf({ ...UNKNOWN_USAGE, inputTokens: 1, cacheReadTokens: 100 }, charged)).to.equal(202n);
  });

  it('counts cache reads and both kinds of cache writes as input', () => {
    const all = { inputTokens: 1, outputTokens: 99, cacheReadTokens: 2, cacheWriteTokens: 4, cacheWrite1hTokens: 8 };
    expect(totalInputTokens(all)).to.equal(15);
    expect(totalInputTokens(UNKNOWN_USAGE)).to.equal(0);
  });

  it('holds for the dearest kind of input, the dearest tier and the dearest candidate', () => {
    const charged = samplePrice(1n, 1n, { cacheWrite1hE8: 8_000_000n });
    expect(dearestCost(10, 0, [charged])).to.equal(80n);
    const tiered = samplePrice(1n, 1n, { above: { ...samplePrice(9_000_000n, 5_000_000n), tokens: 1 } });
    expect(dearestCost(10, 2, [charged, tiered])).to.equal(100n);
    expect(dearestCost(10, 2, [])).to.equal(0n);
  });
});
