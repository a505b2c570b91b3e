import { expect } from 'chai';
import { newId } from '../../../core/base/ids';
import { groupOf } from '../../../core/rollouts/rollout';

const CALLS = 100_000;

/** Returns six standard deviations around a share: a correct draw is outside once in 500 million times. */
function bounds(share: number): [number, number] {
  const deviation = 6 * Math.sqrt(CALLS * share * (1 - share));
  return [CALLS * share - deviation, CALLS * share + deviation];
}

const rollout = { name: 'next', stickyBy: 'account', include: new Set<string>(), exclude: new Set<string>() } as const;
const caller = (accountId: string, keyId = 'k') => ({ accountId, keyId });

describe('the treatment group of a rollout', () => {
  const accounts = Array.from({ length: CALLS }, newId);

  for (const share of [0.01, 0.25, 0.99]) {
    it(`has ${share * 100} % of the callers, within the limits of chance`, () => {
      const drawn = accounts.filter((id) => groupOf(rollout, share, caller(id), 'c').group === 'treatment').length;
      expect(drawn).to.be.within(...bounds(share));
    });
  }

  it('is empty at 0 % and has every caller at 100 %', () => {
    const groupsAt = (share: number) => new Set(accounts.map((id) => groupOf(rollout, share, caller(id), 'c').group));
    expect([...groupsAt(0)]).to.deep.equal(['control']);
    expect([...groupsAt(1)]).to.deep.equal(['treatment']);
  });

  it('keeps its callers when the share grows', () => {
    for (const [small, large] of [
      [0.01, 0.05],
      [0.05, 0.5],
    ] as const) {
      for (const id of accounts) {
        if (groupOf(rollout, small, caller(id), 'c').group !== 'treatment') continue;
        expect(groupOf(rollout, large, caller(id), 'c').group).to.equal('treatment');
      }
    }
  });

  it('depends only on the property that the rollout is sticky by', () => {
    const groups = (stickyBy: 'account' | 'key' | 'request', of: (index: number) => [string, string, string]) =>
      new Set(
        accounts.slice(0, 200).map((_, index) => {
          const [account, key, call] = of(index);
          return groupOf({ ...rollout, stickyBy }, 0.5, caller(account, key), call).group;
        }),
      ).size;
    expect(groups('account', (index) => ['a', `k${index}`, `c${index}`])).to.equal(1);
    expect(groups('key', (index) => [`a${index}`, 'k', `c${index}`])).to.equal(1);
    expect(groups('request', (index) => [`a${index}`, `k${index}`, 'c'])).to.equal(1);
    expect(groups('request', (index) => ['a', 'k', `c${index}`])).to.equal(2);
  });

  it('is drawn independently for each rollout', () => {
    const isIn = (name: string, id: string) =>
      groupOf({ ...rollout, name }, 0.1, caller(id), 'c').group === 'treatment';
    const both = accounts.filter((id) => isIn('one', id) && isIn('other', id)).length;
    expect(both).to.be.within(...bounds(0.01));
  });

  it('always includes the included accounts and keys, and never the excluded ones', () => {
    const lists = { ...rollout, include: new Set(['friend', 'friendly-key']), exclude: new Set(['shy', 'friend-too']) };
    const group = (account: string, key?: string) => groupOf(lists, 0, caller(account, key), 'c');
    expect(group('friend')).to.include({ group: 'treatment', isDrawn: false });
    expect(group('other', 'friendly-key').group).to.equal('treatment');
    expect(groupOf(lists, 1, caller('shy'), 'c')).to.include({ group: 'control', isDrawn: false });
    expect(groupOf(lists, 1, caller('friend-too', 'friendly-key'), 'c').group).to.equal('control');
    expect(groupOf(lists, 1, caller('other'), 'c')).to.include({ group: 'treatment', isDrawn: true });
  });
});
