import { expect } from 'chai';
import * as fc from 'fast-check';
import {
  buildCatalog,
  type Catalog,
  CatalogProblem,
  isAllowed,
  type Lookup,
  type Upstream,
} from '../../../core/catalog/catalog';
import { sampleAdapter, sampleModel, sampleUpstream } from '../../support/catalog-samples';

type Names = Readonly<Record<string, readonly string[]>>;

/** Makes a catalog from `{ upstream: { model: [aliases] } }`. */
function catalogOf(upstreams: Readonly<Record<string, Names>>): Catalog {
  return buildCatalog(
    Object.entries(upstreams).map(([name, models]) =>
      sampleUpstream(
        name,
        Object.entries(models).map(([model, aliases]) => sampleModel(model, { aliases })),
      ),
    ),
  );
}

/** Returns the entries of a lookup, as `upstream:model`. */
function entriesOf(lookup: Lookup): readonly string[] {
  return 'found' in lookup ? lookup.found.entries.map(({ upstream, model }) => `${upstream.name}:${model.name}`) : [];
}

function refusalOf(make: () => unknown): CatalogProblem {
  try {
    make();
  } catch (error) {
    if (error instanceof CatalogProblem) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('the catalog', () => {
  describe('a catalog with entries of different upstreams', () => {
    it('joins entries that share an alias into one model, which is then found by each of their names', () => {
      const catalog = catalogOf({ a: { one: ['large'] }, b: { two: ['large'] }, c: { three: ['two'] } });
      for (const name of ['one', 'two', 'three', 'large']) expect(entriesOf(catalog.find(name))).to.have.length(3);
    });

    it('joins entries into one model if their names differ only in spelling', () => {
      const catalog = catalogOf({
        a: { 'large-4.5': [] },
        b: { 'Vendor/Large-4-5-20251101': [] },
        c: { large_4_5: [] },
      });
      expect(catalog.models).to.have.length(1);
      for (const name of ['LARGE-4.5', 'other/large_4_5', 'large-4-5-latest', 'large-4-5-2026-01-01'])
        expect(entriesOf(catalog.find(name))).to.have.length(3);
    });

    it('joins the same entries, whatever their order in the file', () => {
      void fc.assert(
        fc.property(fc.shuffledSubarray(['a', 'b', 'c', 'd'], { minLength: 4, maxLength: 4 }), (order) => {
          const all: Record<string, Names> = { a: { x: ['p'] }, b: { y: ['q'] }, c: { z: ['p', 'q'] }, d: { w: [] } };
          const catalog = catalogOf(Object.fromEntries(order.map((name) => [name, all[name] ?? {}])));
          expect(entriesOf(catalog.find('x'))).to.have.members(['a:x', 'b:y', 'c:z']);
          expect(entriesOf(catalog.find('w'))).to.deep.equal(['d:w']);
        }),
      );
    });
  });

  describe('a catalog with two models of one upstream', () => {
    it('refuses an alias that both models share', () => {
      const problem = refusalOf(() => catalogOf({ a: { one: ['same'], two: ['same'] } }));
      expect(problem.message).to.equal('"same" makes "one" and "two" of upstream "a" the same model');
      expect([problem.upstream, problem.model]).to.deep.equal(['a', 'two']);
    });

    it('refuses an entry of another upstream that has the names of both models', () => {
      const problem = refusalOf(() => catalogOf({ a: { one: [], two: [] }, b: { both: ['one', 'two'] } }));
      expect(problem.message).to.equal('"two" makes "two" and "one" of upstream "a" the same model');
    });

    it('keeps both models if their normalised names are equal: exact names work, the normalised name is ambiguous', () => {
      const catalog = catalogOf({ a: { 'large-20250101': [], 'large-20251101': [] }, b: { 'large-20251101': [] } });
      expect(entriesOf(catalog.find('large-20250101'))).to.deep.equal(['a:large-20250101']);
      expect(entriesOf(catalog.find('large-20251101'))).to.have.members(['a:large-20251101', 'b:large-20251101']);
      expect(catalog.find('large')).to.deep.equal({ ambiguous: ['large-20250101', 'large-20251101'] });
    });

    it('never joins both models, for any set of upstreams, models and aliases', () => {
      const word = fc.constantFrom('m', 'M', 'v/m', 'm-latest', 'n', 'N_1', 'n-1', 'n.1', 'o');
      const models = fc.dictionary(word, fc.uniqueArray(word, { maxLength: 2 }), { minKeys: 1, maxKeys: 3 });
      void fc.assert(
        fc.property(fc.tuple(models, models, models), ([a, b, c]) => {
          let catalog: Catalog;
          try {
            catalog = catalogOf({ a, b, c });
          } catch (error) {
            expect(error).to.be.instanceOf(CatalogProblem);
            return;
          }
          const entries = catalog.models.flatMap((model) => model.entries);
          expect(new Set(entries.map(({ model }) => model)).size).to.equal(entries.length);
          expect(entries).to.have.length([a, b, c].flatMap((each) => Object.keys(each)).length);
          for (const model of catalog.models) {
            expect(new Set(model.entries.map(({ upstream }) => upstream)).size).to.equal(model.entries.length);
            for (const name of [model.name, ...model.aliases])
              expect(catalog.find(name)).to.deep.equal({ found: model });
          }
        }),
        { numRuns: 1_000 },
      );
    });
  });

  it("accepts an upstream's own name for a model only at that upstream", () => {
    const catalog = catalogOf({ a: { 'large-4.5': ['large'] }, b: { 'vendor/large-4-5': [] } });
    const model = catalog.findExact('a', 'large-4.5');
    expect(model?.entries).to.have.length(2);
    expect(catalog.findExact('b', 'vendor/large-4-5')).to.equal(model);
    for (const [upstream, name] of [
      ['a', 'large'],
      ['a', 'LARGE-4.5'],
      ['a', 'vendor/large-4-5'],
      ['b', 'large-4.5'],
      ['c', 'large-4.5'],
      ['a', '__proto__'],
    ] as const)
      expect(catalog.findExact(upstream, name), `${upstream} ${name}`).to.equal(undefined);
  });

  it('suggests similar names when a name is unknown', () => {
    const catalog = catalogOf({ a: { 'acme-large': ['acme-huge'] } });
    expect(catalog.find('acme-lagre')).to.deep.equal({ unknown: true, nearest: ['acme-large', 'acme-huge'] });
    expect(catalog.find('')).to.deep.equal({ unknown: true, nearest: [] });
    for (const name of ['__proto__', 'constructor', 'toString']) expect(catalog.find(name)).to.have.property('unknown');
  });

  it('shows a model under the name of its best-tier upstream, with the other names as aliases', () => {
    const { models } = buildCatalog([
      sampleUpstream('reseller', [sampleModel('vendor.large', { aliases: ['large'] })]),
      sampleUpstream('vendor', [sampleModel('large')], { tier: 'official' }),
    ]);
    expect(models.map(({ name, aliases }) => ({ name, aliases }))).to.deep.equal([
      { name: 'large', aliases: ['vendor.large'] },
    ]);
  });

  describe('the catalog, when it is searched for the candidates of a model,', () => {
    const both = [sampleAdapter('messages', ['messages']), sampleAdapter('chat', ['chat'])];
    const upstreams: readonly Upstream[] = [
      sampleUpstream('both', [sampleModel('m')], { adapters: both }),
      sampleUpstream('messages-only', [sampleModel('m')]),
      sampleUpstream('off', [sampleModel('m')], { adapters: both, disabled: 'KEY is not set' }),
    ];
    const catalog = buildCatalog(upstreams);
    const lookup = catalog.find('m');
    const namesFor = (protocol: 'messages' | 'chat') =>
      'found' in lookup ? catalog.candidates(lookup.found, protocol).map(({ upstream }) => upstream.name) : [];

    it('returns the enabled upstreams that speak the protocol of the call', () => {
      expect(namesFor('messages')).to.have.members(['both', 'messages-only']);
      expect(namesFor('chat')).to.deep.equal(['both']);
    });
  });

  describe('the list of models that an API key may call', () => {
    const catalog = catalogOf({
      a: { 'large-4.5': ['large'], 'small-20250101': [], 'small-20251101': [] },
      b: { 'vendor/Large-4-5': [] },
    });
    const allows = (allowed: readonly string[] | undefined, name: string): boolean => {
      const lookup = catalog.find(name);
      if (!('found' in lookup)) throw new Error(`${name} is not one model`);
      return isAllowed(catalog, catalog.candidates(lookup.found, 'messages'), allowed);
    };

    it('allows every model if the key has no list, and no model if the list is empty', () => {
      expect(allows(undefined, 'large')).to.equal(true);
      expect(allows([], 'large')).to.equal(false);
    });

    it('allows a model by any of its names and aliases, in any spelling', () => {
      for (const name of ['large', 'large-4.5', 'LARGE_4_5', 'vendor/Large-4-5'])
        expect(allows(['other', name], 'large-4.5')).to.equal(true);
      expect(allows(['other', 'larger'], 'large-4.5')).to.equal(false);
    });

    it('allows one snapshot of a model without allowing another snapshot', () => {
      expect(allows(['small-20250101'], 'small-20250101')).to.equal(true);
      expect(allows(['small-20250101'], 'small-20251101')).to.equal(false);
    });

    it('allows every snapshot of a model if it contains the name that all snapshots share', () => {
      expect(allows(['small'], 'small-20250101')).to.equal(true);
      expect(allows(['small'], 'small-20251101')).to.equal(true);
      expect(allows(['small'], 'large')).to.equal(false);
    });
  });
});
