import { expect } from 'chai';
import { DenseSet } from '../../../core/base/dense-set';

describe('a dense set', () => {
  const some = (count: number) => Array.from({ length: count }, (_, name) => ({ name, place: -1 }));

  it('contains exactly the items that were added and not deleted, in whatever order they are deleted', () => {
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

  it('ignores the deletion of an item that it does not contain', () => {
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
