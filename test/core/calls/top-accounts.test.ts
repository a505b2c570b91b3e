import { expect } from 'chai';
import { type AccountSum, AccountSums } from '../../../core/calls/account-sums';
import { TopAccounts } from '../../../core/calls/top-accounts';

const HOUR_MS = 3_600_000;

function spent(costUsd: number, calls = 1): AccountSum {
  return { calls, inputTokens: calls * 10, outputTokens: calls * 5, costUsd };
}

describe('accounts with metrics of their own', () => {
  let nowMs = 0;
  let top: TopAccounts;

  beforeEach(() => {
    nowMs = 0;
    top = new TopAccounts(2, () => nowMs);
  });

  const costs = () => Object.fromEntries([...top.counted()].map(([account, { costUsd }]) => [account, costUsd]));

  it('are those with the highest spending; all others share one series', () => {
    top.add([
      ['a', spent(1)],
      ['b', spent(3)],
      ['c', spent(2)],
      ['d', spent(0.5)],
    ]);
    expect(costs()).to.deep.equal({ b: 3, c: 2, other: 1.5 });
  });

  it('count from the moment they enter; their earlier calls stay in the shared series', () => {
    top.add([
      ['a', spent(1)],
      ['b', spent(3)],
      ['c', spent(2)],
    ]);
    top.add([['a', spent(9)]]);
    expect(costs()).to.deep.equal({ a: 9, b: 3, other: 1 });
  });

  it('continue at their former value when they return, and no counter falls', () => {
    top.add([
      ['a', spent(5)],
      ['b', spent(4)],
      ['c', spent(1)],
    ]);
    nowMs += 10 * HOUR_MS;
    top.add([
      ['c', spent(1)],
      ['d', spent(1)],
    ]);
    expect(costs()).to.deep.equal({ c: 1, d: 1, other: 1 });
    nowMs += 10 * HOUR_MS;
    top.add([['a', spent(2)]]);
    expect(costs()['a']).to.equal(7);
  });

  it('do not change when another account spends slightly more', () => {
    top.add([
      ['a', spent(10)],
      ['b', spent(10)],
      ['c', spent(11)],
    ]);
    const before = Object.keys(costs());
    top.add([['a', spent(1.5)]]);
    expect(Object.keys(costs())).to.have.members(before);
  });

  it('are 3 at most with 10,000 accounts in each of many hours, while the sum has the spending of all', () => {
    let sum = 0;
    const highest = new Map<string, number>();
    for (let hour = 0; hour < 30; hour += 1) {
      const sums = Array.from({ length: 10_000 }, (_, at) => {
        const costUsd = ((at * 7_919 + hour * 104_729) % 10_007) / 64;
        sum += costUsd;
        return [`account-${at}`, spent(costUsd)] as const;
      });
      top.add(sums);
      nowMs += HOUR_MS;
      const shown = costs();
      expect(Object.keys(shown).length).to.be.at.most(3);
      for (const [account, cost] of Object.entries(shown)) {
        expect(cost, account).to.be.at.least(highest.get(account) ?? 0);
        highest.set(account, cost);
      }
    }
    expect([...highest.values()].reduce((one, other) => one + other)).to.be.closeTo(sum, 1e-3);
  });

  it('can be switched off', () => {
    const none = new TopAccounts(0);
    none.add([['a', spent(1)]]);
    expect([...none.counted()].map(([account]) => account)).to.deep.equal(['other']);
  });
});

describe('the sums between two scrapes', () => {
  it('have 10,000 accounts at most, and add the calls of further accounts to the shared series', () => {
    const sums = new AccountSums();
    for (let at = 0; at < 10_100; at += 1) sums.add(`account-${at}`, undefined, 0n);
    const taken = sums.take();
    expect(taken).to.have.length(10_001);
    expect(taken.find(([account]) => account === 'other')?.[1].calls).to.equal(100);
    expect(sums.take()).to.deep.equal([]);
  });
});
