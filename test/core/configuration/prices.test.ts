import { expect } from 'chai';
import * as fc from 'fast-check';
import { costOf, maxCost, type Price } from '../../../core/catalog/price';
import { countsOf, outputTokens, type Pass, totalInputTokens } from '../../../core/catalog/usage';
import { readPrice } from '../../../core/configuration/prices';
import type { LocatedProblem } from '../../../core/configuration/problems';

type Settings = Parameters<typeof readPrice>[1];

const NONE = { tiers: [], speeds: [], geos: [] };

function read(price: Settings['price'], mayAnswerWith: Settings['mayAnswerWith'] = NONE) {
  const problems: LocatedProblem[] = [];
  return { price: readPrice([], { price, mayAnswerWith }, problems), problems };
}

const PLAIN = { input: 2, output: 10 };

function cost(price: Price, variant: Omit<Pass, 'counts'>): bigint {
  return costOf({ passes: [{ ...variant, counts: countsOf({ input: 1_000, output: 100 }) }] }, price);
}

describe('a price in the configuration', () => {
  it('applies factors and replacement prices of variants, in any combination', () => {
    const { price, problems } = read({
      ...PLAIN,
      tiers: { priority: { factor: 2 }, flex: { factor: '0.5' } },
      speeds: { fast: { input: 30, output: 150 } },
      geos: { us: { factor: 1.1 } },
    });
    expect(problems).to.deep.equal([]);
    expect(price.variants).to.have.property('size', 3 * 2 * 2 - 1);
    expect(cost(price, {})).to.equal(300_000n);
    expect(cost(price, { tier: 'flex' })).to.equal(150_000n);
    expect(cost(price, { tier: 'flex', geo: 'us' })).to.equal(165_000n);
    expect(cost(price, { speed: 'fast' })).to.equal(4_500_000n);
    expect(cost(price, { tier: 'priority', speed: 'fast', geo: 'us' })).to.equal(9_900_000n);
  });

  it('has the highest rates of two requested variants if both set their own price', () => {
    const { price } = read({
      ...PLAIN,
      tiers: { priority: { input: 50, output: 60 } },
      speeds: { fast: { input: 30, output: 150, above: { tokens: 500, input: 40, output: 200 } } },
    });
    // The input is above one of the two thresholds: 1,000 × 50 + 100 × 200.
    expect(cost(price, { tier: 'priority', speed: 'fast' })).to.equal(7_000_000n);
  });

  it('is refused if a factor leads to more than 8 decimals, and the error names the meter', () => {
    const { problems } = read({ input: '0.00000001', output: 10, geos: { us: { factor: 1.1 } } });
    expect(problems[0]).to.deep.equal({
      path: ['price', 'geos', 'us', 'factor'],
      message: 'gives the price of input more than 8 decimals',
    });
  });

  it('is refused if the upstream may answer with a variant that has no price', () => {
    const { problems } = read(PLAIN, { ...NONE, tiers: ['priority'] });
    expect(problems).to.deep.equal([
      { path: ['mayAnswerWith', 'tiers', '0'], message: '"priority" has no price under price.tiers' },
    ]);
  });

  it('charges tokens of a kind (meter) without its own price at the highest rate that could apply, and lists these kinds', () => {
    const { price } = read({ ...PLAIN, audioInput: 40 });
    expect(price.rates).to.include({ audioCacheRead: 4_000_000_000n, imageInput: 4_000_000_000n });
    expect(price.rates).to.include({ cacheRead: 200_000_000n, imageOutput: 1_000_000_000n });
    expect([...price.unpriced].sort()).to.deep.equal(['audioOutput', 'imageInput', 'imageOutput']);
  });

  it('never leads to a charge above the hold within the token bounds, whichever variant the answer has', () => {
    const rate = fc.integer({ min: 0, max: 100_000 }).map((cents) => cents / 100);
    const card = fc.record({ input: rate, output: rate, cacheRead: rate, cacheWrite: rate, cacheWrite1h: rate });
    const above = fc.option(fc.tuple(card, fc.integer({ min: 1, max: 200_000 })), { nil: undefined });
    const own = fc.tuple(card, above).map(([rates, dearer]) => ({
      ...rates,
      ...(dearer !== undefined && { above: { ...dearer[0], tokens: dearer[1] } }),
    }));
    const variant = fc.oneof(
      own,
      fc.integer({ min: 0, max: 1_000 }).map((percent) => ({ factor: percent / 100 })),
    );
    const settings = fc.record({ plain: own, a: variant, b: variant, c: variant });
    const count = fc.option(fc.integer({ min: 0, max: 300_000 }), { nil: undefined });
    const counts = fc.record({ input: count, output: count, cacheRead: count, cacheWrite: count, cacheWrite1h: count });
    const name = (word: string) => fc.constantFrom(undefined, word);
    const passes = fc.array(fc.record({ tier: name('a'), speed: name('b'), geo: name('c'), counts }), { maxLength: 3 });
    void fc.assert(
      fc.property(settings, passes, ({ plain, a, b, c }, reported) => {
        const may = { tiers: ['a'], speeds: ['b'], geos: ['c'] };
        const { price, problems } = read({ ...plain, tiers: { a }, speeds: { b }, geos: { c } }, may);
        expect(problems).to.deep.equal([]);
        const usage = { passes: reported.map((pass) => ({ ...pass, counts: countsOf(pass.counts) })) };
        const held = maxCost(totalInputTokens(usage), outputTokens(usage) ?? 0, price.possible);
        expect(costOf(usage, price) <= held).to.equal(true);
      }),
      { numRuns: 2_000 },
    );
  });
});
