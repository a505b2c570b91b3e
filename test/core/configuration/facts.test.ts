import { expect } from 'chai';
import { declaredFacts, retiringModels } from '../../../core/catalog/facts';
import { checkDays, readFacts } from '../../../core/configuration/facts';
import { withPublishedPrices } from '../../../core/configuration/price-lists';
import type { LocatedProblem } from '../../../core/configuration/problems';
import { sampleModel, sampleUpstream } from '../../support/catalog-samples';

const DAY_MS = 86_400_000;

/** Returns the facts of a model that takes the values of a published list, before those of its upstream are added. */
function published(from: string, endpoint: object, model: object = {}): unknown {
  const value = { serviceEndpoints: { acme: { ...endpoint, models: { one: { from, ...model } } } } };
  return (withPublishedPrices(value, []) as typeof value).serviceEndpoints.acme.models.one;
}

describe('The facts of a model', () => {
  it('are unknown where the configuration says nothing or `unknown`, and a list with `unknown` is unknown as a whole', () => {
    expect(readFacts({}, undefined)).to.equal(undefined);
    const said = { region: ['eu', 'unknown'], retention: 'unknown', trains: 'unknown' } as const;
    expect(readFacts({ ...said, region: [...said.region] }, undefined)).to.equal(undefined);
    expect(declaredFacts({})).to.deep.equal({});
  });

  it('have a list of regions, the days for which data is kept, and the day of the release as `created` says it', () => {
    expect(readFacts({ region: 'eu', retention: 'none', trains: 'no' }, '2026-03-05')).to.deep.equal({
      region: ['eu'],
      retention: 0,
      trains: false,
      released: '2026-03-05',
    });
    expect(readFacts({ region: ['eu', 'us'], retention: 30, trains: 'yes' }, undefined)).to.deep.equal({
      region: ['eu', 'us'],
      retention: 30,
      trains: true,
    });
  });

  it("are taken from the vendor's list only where neither the model nor its upstream says them", () => {
    const own = { url: 'https://api.anthropic.com', facts: { retention: 'none' } };
    expect(published('anthropic/claude-haiku-4-5', own, { facts: { tools: false } })).to.deep.nested.include({
      'facts.trains': 'no',
      'facts.tools': false,
      'price.source': 'https://platform.claude.com/docs/en/about-claude/pricing',
    });
    expect(published('anthropic/claude-haiku-4-5', own)).not.to.have.nested.property('facts.retention');
  });

  it("say nothing of data at a host that is not the vendor's own, whose models are the same", () => {
    const elsewhere = published('anthropic/claude-haiku-4-5', { url: 'https://resold.example' });
    expect(elsewhere).to.have.nested.property('facts.tools', true);
    expect(elsewhere).not.to.have.nested.property('facts.trains');
    expect(elsewhere).not.to.have.nested.property('facts.retention');
  });

  it('name the models that retire within 30 days, and no others', () => {
    const day = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
    const models = [-1, 30, 31].map((days) => sampleModel(`in ${days}`, { facts: { retires: day(days) } }));
    const retiring = retiringModels([sampleUpstream('acme', [...models, sampleModel('ever')])]);
    expect(retiring.map(({ model }) => model)).to.deep.equal(['in -1', 'in 30']);
    expect(retiring[1]).to.deep.equal({ upstream: 'acme', model: 'in 30', retires: day(30) });
  });

  it('have days of the calendar', () => {
    const problems: LocatedProblem[] = [];
    checkDays(['facts'], { retires: '2026-02-30', released: '2026-02-28' }, problems);
    expect(problems).to.deep.equal([{ path: ['facts', 'retires'], message: 'is no day of the calendar' }]);
  });
});
