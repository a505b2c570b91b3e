import { expect } from 'chai';
import { nearestNames, normaliseModelName } from '../../../core/catalog/model-names';

describe('model names', () => {
  for (const [name, normalised] of [
    ['acme-large-4.5', 'acme-large-4-5'],
    ['ACME-Large_4.5', 'acme-large-4-5'],
    ['acme/acme-large-4.5', 'acme-large-4-5'],
    ['eu/acme/acme-large-4.5', 'acme-large-4-5'],
    ['acme-large-4-5-20251101', 'acme-large-4-5'],
    ['acme-large-4-5-2025-11-01', 'acme-large-4-5'],
    ['acme-large-4-5-latest', 'acme-large-4-5'],
    ['acme-large-4-5-20251101-latest', 'acme-large-4-5'],
    ['latest', 'latest'],
    ['acme-4', 'acme-4'],
    ['acme-1234', 'acme-1234'],
  ] as const) {
    it(`are normalised: "${name}" becomes "${normalised}"`, () =>
      expect(normaliseModelName(name)).to.equal(normalised));
  }

  it('that are unknown get at most three similar names as suggestions, nearest first', () => {
    const known = ['large', 'larger', 'largest', 'barge', 'small'];
    expect(nearestNames('larg', known)).to.deep.equal(['large', 'barge', 'larger']);
    expect(nearestNames('LARGE', known)[0]).to.equal('large');
  });

  it('that are unknown get no suggestion if no known name is similar', () => {
    expect(nearestNames('gpt', ['acme-large-4-5'])).to.deep.equal([]);
    expect(nearestNames('x'.repeat(5_000), ['acme-large-4-5'])).to.deep.equal([]);
  });
});
