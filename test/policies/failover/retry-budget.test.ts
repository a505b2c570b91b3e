import { expect } from 'chai';
import { RetryBudget } from '../../../policies/failover/retry-budget';

/** Makes a budget whose clock the test sets. */
function budgetAt(clock: { nowMs: number }): RetryBudget {
  return new RetryBudget(() => clock.nowMs);
}

function spendAll(budget: RetryBudget): number {
  let spent = 0;
  for (; budget.isLeft; spent += 1) budget.spend();
  return spent;
}

describe('the budget for further attempts', () => {
  it('is three attempts a second while there are few calls', () => {
    const budget = budgetAt({ nowMs: 0 });
    for (let call = 0; call < 10; call += 1) budget.noteCall();
    expect(spendAll(budget)).to.equal(30);
    expect(budget.isLeft).to.equal(false);
  });

  it('is a fifth of the calls of the last ten seconds', () => {
    const clock = { nowMs: 0 };
    const budget = budgetAt(clock);
    for (; clock.nowMs < 10_000; clock.nowMs += 10) budget.noteCall();
    clock.nowMs = 9_999;
    expect(spendAll(budget)).to.equal(200);
  });

  it('regains attempts that were used ten seconds ago, and shrinks when calls become ten seconds old', () => {
    const clock = { nowMs: 500 };
    const budget = budgetAt(clock);
    for (let call = 0; call < 1_000; call += 1) budget.noteCall();
    expect(spendAll(budget)).to.equal(200);
    clock.nowMs = 9_999;
    expect(budget.isLeft).to.equal(false);
    clock.nowMs = 10_000;
    expect(spendAll(budget)).to.equal(30);
    clock.nowMs = 1_000_000;
    expect(spendAll(budget)).to.equal(30);
  });
});
