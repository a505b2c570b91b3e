import { expect } from 'chai';
import fc from 'fast-check';
import type { ModelEntry } from '../../../core/catalog/catalog';
import { CustomerPrices, parseFactor } from '../../../core/catalog/customer-prices';
import { cardsWith, costOf, maxCost, type Price, plainPrice, variantKey } from '../../../core/catalog/price';
import { sampleModel } from '../../support/catalog-samples';

const countsOf = (counts: Record<string, number>) => ({ passes: [{ counts: new Map(Object.entries(counts)) }] });

describe('the prices of customers', () => {
  const priced = (price: Price, name = 'large', aliases: readonly string[] = []): ModelEntry =>
    sampleModel(name, { aliases, price });
  const none = new CustomerPrices(new Map());

  it("equal the upstream's prices without a markup", () => {
    const model = priced(plainPrice({ input: 300n, output: 1_500n }));
    expect(none.priceOf(undefined)(model)).to.equal(model.price);
  });

  it("are the upstream's prices of tokens, variants and pieces multiplied by the markup, and each is rounded up", () => {
    const plain = plainPrice(
      { input: 1n, output: 1_500n },
      { tokens: 9, rates: plainPrice({ input: 3n, output: 5n }).rates },
    );
    const variants = new Map([[variantKey({ tier: 'priority' }), { rates: plain.rates, above: undefined }]]);
    const may = { tier: ['priority'], speed: [], geo: [] };
    const pieces = new Map([['webSearch', 7n]]) as Price['pieces'];
    const price = none.priceOf('1.5')(priced({ ...plain, variants, may, pieces }));
    expect(price.rates).to.include({ input: 2n, output: 2_250n });
    expect(price.above).to.deep.include({ tokens: 9 });
    expect(price.above?.rates).to.include({ input: 5n, output: 8n });
    expect(price.pieces.get('webSearch')).to.equal(11n);
    expect(price.variants.get(variantKey({ tier: 'priority' }))?.rates).to.include({ output: 2_250n });
    expect(price.possible).to.have.length(2);
  });

  it('are found in a price list by any name, alias or spelling, and include variants that the upstream may choose', () => {
    const own = plainPrice({ input: 7n, output: 8n });
    const prices = new CustomerPrices(
      new Map([['partner', { factorE8: 200_000_000n, models: new Map([['large-2-1', own]]) }]]),
    );
    const priceOf = prices.priceOf('partner');
    const may = { tier: ['priority'], speed: [], geo: [] };
    const upstreams = { ...plainPrice({ input: 1n, output: 1n }), may };
    expect(priceOf(priced(upstreams, 'x', ['acme/Large_2.1'])).rates.input).to.equal(7n);
    expect(priceOf(priced(upstreams, 'large-2-1-latest')).may).to.deep.equal(may);
    expect(priceOf(priced(upstreams, 'small')).rates.input).to.equal(2n);
  });

  it('never make a call cost more than its hold for the same tokens', () => {
    const amount = fc.bigInt({ min: 0n, max: 10_000_000_000n });
    const factor = fc.integer({ min: 10, max: 10_000 }).map((each) => (each / 100).toFixed(2));
    const tokens = fc.integer({ min: 0, max: 1_000_000 });
    fc.assert(
      fc.property(amount, amount, factor, tokens, tokens, (input, output, markup, read, said) => {
        const price = none.priceOf(markup)(priced(plainPrice({ input, output })));
        const held = maxCost(read, said, cardsWith(price, {}) ?? []);
        expect(costOf(countsOf({ input: read, output: said }), price) <= held).to.equal(true);
      }),
    );
  });

  it('are undefined if the markup names a price list that is not configured', () => {
    expect(none.has('gone')).to.equal(false);
    expect(() => none.priceOf('gone')).to.throw('"gone"');
    expect(() => none.check('gone')).to.throw('(none is configured)');
  });

  it('allow a markup from 0.1 to 100 with at most 8 decimals', () => {
    expect(parseFactor('1.25')).to.equal(125_000_000n);
    for (const text of ['0.09', '100.1', '1.123456789', 'x', '', '1e1'])
      expect(() => parseFactor(text), text).to.throw(RangeError);
  });
});
