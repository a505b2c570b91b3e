import { expect } from 'chai';
import { declaredOf, exclusionOf, joinDemands, readDemands, readGivenDemands } from '../../../core/catalog/demands';
import type { ModelFacts } from '../../../core/catalog/facts';
import { sampleModel, samplePrice } from '../../support/catalog-samples';

const joined = (...texts: readonly string[]) => joinDemands(...texts.map(readDemands))?.text;

/** Returns which fact of a model excludes it, and what it has instead. */
function excludes(demands: string, facts: ModelFacts, { input = 300_000_000n, output = 1_500_000_000n } = {}) {
  const price = samplePrice(input, output);
  const exclusion = exclusionOf(readDemands(demands), declaredOf(sampleModel('m', { facts, price }), price));
  return exclusion && `${exclusion.fact} ${exclusion.demanded} ${exclusion.has}`;
}

describe('Demands', () => {
  it('are one object for equal texts, whatever their order and spaces', () => {
    expect(readDemands('trains=no ;region= eu , us')).to.equal(readDemands('region=eu,us; trains=no'));
    expect(readDemands(' context = 400000').text).to.equal('context=400000');
  });

  const WRONG = ['', ';', 'region=', 'region=eu;', 'Region=eu', 'region=eu,,us', 'region=e_u', 'retention=unknown'];
  for (const text of [...WRONG, 'retention=1.5', 'trains=yes', 'max-input-price=1e3', 'max-output-price=-1', 'a=b'])
    it(`refuse "${text}"`, () => {
      expect(() => readDemands(text)).to.throw(RangeError);
    });

  it('that are joined intersect regions and keep the stricter of all other values', () => {
    expect(joined('region=eu,us; retention=30', 'region=us,ap; retention=none')).to.equal('region=us; retention=none');
    expect(joined('max-input-price=3.0; context=8', 'max-input-price=2; context=9; trains=no')).to.equal(
      'trains=no; max-input-price=2; context=9',
    );
    expect(joinDemands(undefined, undefined)).to.equal(undefined);
  });

  it('that share no region are met by none, also once they are written and read again', () => {
    const text = joined('region=eu', 'region=us') ?? '';
    expect(text).to.equal('region=none');
    expect(excludes(text, { region: ['eu'] })).to.equal('region none eu');
    expect(excludes(joined(text, 'region=none') ?? '', { region: ['none'] })).to.equal('region none none');
  });

  it('that are joined are read again, although they are longer together than a text may be that is given', () => {
    const many = `region=${Array.from({ length: 200 }, (_, at) => `r${at}`).join()}`;
    const text = joined(many, `context=${'0'.repeat(900)}1`) ?? '';
    expect(readDemands(text).text).to.equal(text);
    expect(() => readGivenDemands(text)).to.throw(RangeError, 'at most 1000 characters');
  });

  it('are met by equal values, by no unknown fact, and by a list only if all of it is demanded', () => {
    expect(excludes('region=eu,us', { region: ['us'] })).to.equal(undefined);
    expect(excludes('region=eu', { region: ['eu', 'us'] })).to.equal('region eu eu,us');
    expect(excludes('region=eu', {})).to.equal('region eu unknown');
    expect(excludes('retention=30', { retention: 30 })).to.equal(undefined);
    expect(excludes('retention=none', { retention: 1 })).to.equal('retention none 1');
    expect(excludes('retention=7', {})).to.equal('retention 7 unknown');
    expect(excludes('trains=no', { trains: true })).to.equal('trains no yes');
    expect(excludes('max-input-price=3; max-output-price=15', {})).to.equal(undefined);
    expect(excludes('max-output-price=14.99', {})).to.equal('max-output-price 14.99 15.00000000');
    expect(excludes('context=100000', {})).to.equal(undefined);
    expect(excludes('context=100001', {})).to.equal('context 100001 100000');
  });
});
