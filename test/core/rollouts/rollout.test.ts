import { expect } from 'chai';
import { newId } from '../../../core/ids';
import { armOf, SLOTS } from '../../../core/rollouts/rollout';

const CALLS = 100_000;

/** Six standard deviations: a right share is outside of them once in 500 million times. */
function bounds(share: number): [number, number] {
  const deviation = 6 * Math.sqrt(CALLS * share * (1 - share));
  return [CALLS * share - deviation, CALLS * share + deviation];
}

const rollout = { name: 'next', stickyBy: 'account', include: new Set<string>(), exclude: new Set<string>() } as const;
const caller = (accountId: string, keyId = 'k') => ({ accountId, keyId });

describe('who is in a rollout', () => {
  const accounts = Array.from({ length: CALLS }, newId);

  for (const share of [0.001, 0.01, 0.05, 0.25, 0.5, 0.99]) {
    it(`is ${share * 100} % of the callers, within chance`, () => {
      const drawn = accounts.filter((id) => armOf(rollout, share, caller(id), 'c').arm === 'candidate').length;
      expect(drawn).to.be.within(...bounds(share));
    });
  }

  it('is nobody at 0 % and everybody at 100 %', () => {
    const armsAt = (share: number) => new Set(accounts.map((id) => armOf(rollout, share, caller(id), 'c').arm));
    expect([...armsAt(0)]).to.deep.equal(['control']);
    expect([...armsAt(1)]).to.deep.equal(['candidate']);
  });

  it('stays in when the share grows', () => {
    for (const [small, large] of [
      [0.01, 0.05],
      [0.05, 0.5],
    ] as const) {
      for (const id of accounts) {
        if (armOf(rollout, small, caller(id), 'c').arm !== 'candidate') continue;
        expect(armOf(rollout, large, caller(id), 'c').arm).to.equal('candidate');
      }
    }
  });

  it('is drawn by what the rollout is sticky by, and by nothing else', () => {
    const arms = (stickyBy: 'account' | 'key' | 'request', of: (index: number) => [string, string, string]) =>
      new Set(
        accounts.slice(0, 200).map((_, index) => {
          const [account, key, call] = of(index);
          return armOf({ ...rollout, stickyBy }, 0.5, caller(account, key), call).arm;
        }),
      ).size;
    expect(arms('account', (index) => ['a', `k${index}`, `c${index}`])).to.equal(1);
    expect(arms('key', (index) => [`a${index}`, 'k', `c${index}`])).to.equal(1);
    expect(arms('request', (index) => [`a${index}`, `k${index}`, 'c'])).to.equal(1);
    expect(arms('request', (index) => ['a', 'k', `c${index}`])).to.equal(2);
  });

  it('is drawn anew for every rollout', () => {
    const isIn = (name: string, id: string) => armOf({ ...rollout, name }, 0.1, caller(id), 'c').arm === 'candidate';
    const both = accounts.filter((id) => isIn('one', id) && isIn('other', id)).length;
    expect(both).to.be.within(...bounds(0.01));
  });

  it('stands in a slot that knows nothing of who is in', () => {
    const places = accounts.map((id) => armOf(rollout, 0.25, caller(id), 'c'));
    for (let slot = 0; slot < SLOTS; slot += 1) {
      const own = places.filter((each) => each.slot === slot);
      expect(own.length).to.be.within(CALLS / SLOTS - 340, CALLS / SLOTS + 340);
      expect(own.filter(({ arm }) => arm === 'candidate').length / own.length).to.be.closeTo(0.25, 0.05);
    }
  });

  it('is always who is included, by account or key, and never who is excluded', () => {
    const lists = { ...rollout, include: new Set(['friend', 'friendly-key']), exclude: new Set(['shy', 'friend-too']) };
    const arm = (account: string, key?: string) => armOf(lists, 0, caller(account, key), 'c');
    expect(arm('friend')).to.include({ arm: 'candidate', isDrawn: false });
    expect(arm('other', 'friendly-key').arm).to.equal('candidate');
    expect(armOf(lists, 1, caller('shy'), 'c')).to.include({ arm: 'control', isDrawn: false });
    expect(armOf(lists, 1, caller('friend-too', 'friendly-key'), 'c').arm).to.equal('control');
    expect(armOf(lists, 1, caller('other'), 'c')).to.include({ arm: 'candidate', isDrawn: true });
  });
});
