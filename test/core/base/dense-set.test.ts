import { expect } from 'chai';
import { DenseSet } from '../../../core/base/dense-set';

describe('a dense set', () => {
  const some = (count: number) => Array.from({ length: count }, (_, name) => ({ name, place: -1 }));

  it('has what was added and not deleted, whatever is deleted', () => {
    const items = some(50);
    const set = new DenseSet<(typeof items)[number]>();
    const expected = new Set<(typeof items)[number]>();
    for (let step = 0; step < 5_000; step += 1) {
      const item = items[(step * 7_919) % items.length] as (typeof items)[number];
      if (expected.delete(item)) set.delete(item);
      else {
        set.add(item);
        expected.add(item);
      }
      expect(set.size).to.equal(expected.size);
    }
    expect(set.all()).to.have.members([...expected]);
  });

  it('ignores what it does not have', () => {
    const [one, other, third] = [{ place: -1 }, { place: -1 }, { place: -1 }];
    const set = new DenseSet<{ place: number }>();
    set.add(one);
    set.add(other);
    set.delete(third);
    set.delete(one);
    set.delete(one);
    expect(set.all()).to.deep.equal([other]);
  });
});
