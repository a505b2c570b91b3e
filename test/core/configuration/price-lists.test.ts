import { expect } from 'chai';
import { findPublished, priceLists, withPublishedPrices } from '../../../core/configuration/price-lists';
import { readPrice } from '../../../core/configuration/prices';
import type { LocatedProblem } from '../../../core/configuration/problems';

const NOTHING = { tiers: [], speeds: [], geos: [] };

function complete(model: object): { readonly completed: unknown; readonly problems: readonly LocatedProblem[] } {
  const problems: LocatedProblem[] = [];
  const value = { serviceEndpoints: { acme: { models: { 'claude-opus-5-5': model } } } };
  const completed = withPublishedPrices(value, problems) as typeof value;
  return { completed: completed.serviceEndpoints.acme.models['claude-opus-5-5'], problems };
}

describe('the shipped price lists', () => {
  for (const { vendor, source, hosts, models } of priceLists()) {
    it(`of ${vendor} have a date, limits and a valid price for each model`, () => {
      expect(source).to.match(/^https:\/\//);
      expect(hosts).not.to.deep.equal([]);
      for (const [name, { date, context, maxOutput, created, ...model }] of Object.entries(models)) {
        expect(date, name).to.match(/^20\d\d-\d\d-\d\d$/);
        expect(created ?? date, name).to.match(/^20\d\d-\d\d-\d\d$/);
        expect([Number.isInteger(context), Number.isInteger(maxOutput)], name).to.deep.equal([true, true]);
        const problems: LocatedProblem[] = [];
        readPrice([], { ...model, mayAnswerWith: NOTHING }, problems);
        expect(problems, name).to.deep.equal([]);
      }
    });
  }

  it('supply only what a model of the configuration omits, and override nothing', () => {
    const { completed, problems } = complete({ from: 'anthropic', context: 7 });
    expect(problems).to.deep.equal([]);
    expect(completed).to.deep.include({ from: 'anthropic', context: 7, maxOutput: 128_000 });
    expect((completed as { price: object }).price).to.include({ input: 4, output: 20, cacheRead: 0.2 });
    expect(completed).not.to.have.property('date');
  });

  it('supply the values of a model with another name if `from` names the model in the list', () => {
    expect(complete({ from: 'anthropic/claude-opus-5' }).completed).to.deep.include({ created: '2026-07-24' });
  });

  it('are named in the error when a configuration names an unknown list or model', () => {
    expect(complete({ from: 'antropic' }).problems).to.deep.equal([
      {
        path: ['serviceEndpoints', 'acme', 'models', 'claude-opus-5-5', 'from'],
        message: 'price list "antropic" does not exist; did you mean "anthropic"?',
      },
    ]);
    expect(findPublished('openai', 'gpt-5.44')).to.deep.equal({
      problem: 'the price list "openai" has no model "gpt-5.44"; did you mean "gpt-5.4"?',
    });
    expect(findPublished('openai', '__proto__')).to.have.property('problem');
  });
});
