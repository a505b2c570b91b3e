import { expect } from 'chai';
import * as fc from 'fast-check';
import { costOf, maxCost, type Price, plainPrice } from '../../../core/catalog/price';
import {
  outputTokens,
  TOKEN_METERS,
  type TokenMeter,
  totalInputTokens,
  UNKNOWN_USAGE,
  type Usage,
  usageOf,
} from '../../../core/catalog/usage';
import { samplePrice } from '../../support/catalog-samples';

/** Prices of models, and prices so high that sums exceed 2^53. */
const e8 = fc.oneof(fc.bigInt({ min: 0n, max: 1_000_000_000n }), fc.bigInt({ min: 0n, max: 1_000_000_000_000n }));
const byMeter = <T>(each: fc.Arbitrary<T>): fc.Arbitrary<Record<TokenMeter, T>> =>
  fc.record(Object.fromEntries(TOKEN_METERS.map((meter) => [meter, each])) as Record<TokenMeter, fc.Arbitrary<T>>);
const price: fc.Arbitrary<Price> = fc
  .tuple(
    byMeter(e8),
    fc.option(fc.record({ rates: byMeter(e8), tokens: fc.integer({ min: 1, max: 1_000_000 }) }), { nil: undefined }),
  )
  .map(([rates, above]) => plainPrice(rates, above));
const count = fc.option(fc.integer({ min: 0, max: 2_000_000 }), { nil: undefined });
const usage: fc.Arbitrary<Usage> = byMeter(count).map(usageOf);
/** Usage that a text model can report. */
const textUsage: fc.Arbitrary<Usage> = fc
  .record({ input: count, output: count, cacheRead: count, cacheWrite: count, cacheWrite1h: count })
  .map(usageOf);

/** Returns the cost as a fraction over one million, without rounding. */
function exactNumerator(used: Usage, { rates, above }: Price): bigint {
  const inForce = above !== undefined && totalInputTokens(used) > above.tokens ? above.rates : rates;
  return [...(used.passes[0]?.counts ?? [])].reduce(
    (sum, [meter, tokens]) => sum + BigInt(tokens ?? 0) * inForce[meter as TokenMeter],
    0n,
  );
}

describe('the cost of usage', () => {
  it('is the exact sum, rounded up once to 1e-8 USD', () => {
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

  it('never exceeds the hold while the tokens stay within their bounds', () => {
    void fc.assert(
      fc.property(textUsage, price, fc.array(price, { maxLength: 3 }), (used, charged, others) => {
        const held = maxCost(
          totalInputTokens(used),
          outputTokens(used) ?? 0,
          [charged, ...others].flatMap(({ possible }) => possible),
        );
        expect(costOf(used, charged) <= held).to.equal(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('never falls when a further token is added', () => {
    void fc.assert(
      fc.property(usage, price, (used, charged) => {
        const flat = { ...charged, above: undefined };
        const more = { passes: [...used.passes, { counts: new Map([['output', 1]]) }] };
        expect(costOf(more, flat) >= costOf(used, flat)).to.equal(true);
      }),
    );
  });

  it('is three dollars for a million tokens at three dollars a million', () => {
    const charged = samplePrice(300_000_000n, 1_500_000_000n);
    expect(costOf(usageOf({ input: 1_000_000 }), charged)).to.equal(300_000_000n);
    expect(costOf(usageOf({ input: 1, output: 1 }), charged)).to.equal(1_800n);
  });

  it('is rounded up to 1e-8 USD if it is a fraction of 1e-8 USD', () => {
    expect(costOf(usageOf({ input: 1 }), samplePrice(1n, 0n))).to.equal(1n);
    expect(costOf(usageOf({ input: 1, output: 1 }), samplePrice(1n, 1n))).to.equal(1n);
    expect(costOf(UNKNOWN_USAGE, samplePrice(1n, 1n))).to.equal(0n);
  });

  it('uses the higher rate for a whole run of the model only if the input of that run is above the threshold', () => {
    const charged = samplePrice(1_000_000n, 0n, { above: { rates: samplePrice(2_000_000n, 0n).rates, tokens: 100 } });
    expect(costOf(usageOf({ input: 100 }), charged)).to.equal(100n);
    expect(costOf(usageOf({ input: 101 }), charged)).to.equal(202n);
    expect(costOf(usageOf({ input: 1, cacheRead: 100 }), charged)).to.equal(202n);
  });

  it('includes cache reads and both kinds of cache writes as input', () => {
    const all = usageOf({ input: 1, output: 99, cacheRead: 2, cacheWrite: 4, cacheWrite1h: 8 });
    expect(totalInputTokens(all)).to.equal(15);
    expect(totalInputTokens(UNKNOWN_USAGE)).to.equal(0);
  });

  it('is held at the highest rate of any input kind, tier and candidate', () => {
    const charged = samplePrice(1n, 1n, { cacheWrite1h: 8_000_000n });
    expect(maxCost(10, 0, charged.possible)).to.equal(80n);
    const tiered = samplePrice(1n, 1n, { above: { rates: samplePrice(9_000_000n, 5_000_000n).rates, tokens: 1 } });
    expect(maxCost(10, 2, [...charged.possible, ...tiered.possible])).to.equal(100n);
    expect(maxCost(10, 2, [])).to.equal(0n);
  });
});
