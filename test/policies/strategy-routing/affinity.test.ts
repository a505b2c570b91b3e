import { expect } from 'chai';
import { Affinity, callerOf, drawOfCaller } from '../../../policies/strategy-routing/affinity';

const key = { accountId: 'a', keyId: 'k', settings: { rev: 0, name: 'n', allowedModels: undefined } };

function caller(members: Readonly<Record<string, unknown>>, keyId = 'k', model = 'm'): string {
  const texts = Object.entries(members).map(([name, value]) => [name, JSON.stringify(value)] as const);
  return callerOf({ members: new Map(texts) }, { ...key, keyId }, model);
}

describe('affinity', () => {
  it('tells callers apart by user id, then cache key, then user, then API key', () => {
    const metadata = { user_id: 'u' };
    expect(caller({ metadata, prompt_cache_key: 'p', user: 'x' })).to.equal(caller({ metadata }));
    expect(caller({ prompt_cache_key: 'p', user: 'x' })).to.equal(caller({ prompt_cache_key: 'p' }));
    expect(caller({ metadata: {}, user: 'x' })).to.equal(caller({ user: 'x' }));
    expect(caller({ metadata: { user_id: 7 }, user: '' })).to.equal(caller({}));
    const different = [
      caller({ metadata }),
      caller({ prompt_cache_key: 'p' }),
      caller({ user: 'x' }),
      caller({}),
      caller({}, 'l'),
      caller({}, 'k', 'n'),
    ];
    expect(new Set(different).size).to.equal(6);
  });

  it('survives members of any kind', () => {
    for (const value of [null, 1, [], 'text', { user_id: null }])
      expect(caller({ metadata: value, prompt_cache_key: value === 'text' ? 1 : value })).to.be.a('string');
  });

  it('keeps nothing of what callers say of their users', () => {
    expect(caller({ user: 'somebody@example.com' })).not.to.contain('somebody');
  });

  it('remembers for an hour who served a caller', () => {
    const affinity = new Affinity();
    affinity.remember('c', 'acme', 0);
    expect(affinity.find('c', 3_599_999)).to.equal('acme');
    expect(affinity.find('c', 3_600_000)).to.equal(undefined);
    expect(affinity.find('d', 0)).to.equal(undefined);
  });

  it('remembers a bounded number of callers and forgets who was not seen longest', () => {
    const affinity = new Affinity(2);
    for (const name of ['one', 'two', 'one', 'three']) affinity.remember(name, 'acme', 0);
    expect(['one', 'two', 'three'].map((name) => affinity.find(name, 0))).to.deep.equal(['acme', undefined, 'acme']);
  });

  it('draws the same for a caller every time, and evenly among callers', () => {
    expect(drawOfCaller('c', 'acme')).to.equal(drawOfCaller('c', 'acme'));
    let low = 0;
    for (let index = 0; index < 10_000; index += 1) if (drawOfCaller(`caller ${index}`, 'acme') < 0.5) low += 1;
    expect(low).to.be.within(4_700, 5_300);
  });
});
