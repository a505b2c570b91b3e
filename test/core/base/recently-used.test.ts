import { expect } from 'chai';
import { RecentlyUsed } from '../../../core/base/recently-used';

describe('the cache of recently used values', () => {
  it('keeps at least the configured number of recently used entries, and at most twice as many', () => {
    const kept = new RecentlyUsed<number>(3);
    for (let each = 0; each < 100; each += 1) {
      kept.set(String(each), each);
      kept.get('0');
    }
    const left = Array.from({ length: 100 }, (_, each) => kept.get(String(each))).filter((each) => each !== undefined);
    expect(left).to.include.members([0, 97, 98, 99]);
    expect(left).to.have.lengthOf.at.most(6);
  });

  it('returns the newest value that was stored under each name', () => {
    const kept = new RecentlyUsed<string>(1);
    expect(kept.set('a', 'first')).to.equal('first');
    kept.set('b', 'other');
    expect(kept.set('a', 'second')).to.equal('second');
    kept.set('c', 'other');
    expect(kept.get('a')).to.equal('second');
    expect(kept.get('b')).to.equal(undefined);
  });
});
