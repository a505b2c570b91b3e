import { expect } from 'chai';
import { ConcurrentCalls } from '../../../policies/key-auth/concurrent-calls';

describe('concurrent calls', () => {
  const limits = { perKey: 2, perAccount: 3 };

  it('are limited for each key, and for all keys of an account together', () => {
    const calls = new ConcurrentCalls();
    const outcomes = ['a', 'a', 'a', 'b', 'b'].map((key) => calls.enter(key, 'account', limits));
    expect(outcomes.map(({ outcome }) => outcome)).to.deep.equal(['entered', 'entered', 'full', 'entered', 'full']);
    expect(outcomes[2]).to.deep.equal({ outcome: 'full', of: 'key', limit: 2 });
    expect(outcomes[4]).to.deep.equal({ outcome: 'full', of: 'account', limit: 3 });
    expect(calls.enter('c', 'another account', limits).outcome).to.equal('entered');
  });

  it('free their place once when they end, even if they report it twice, and keep no memory', () => {
    const calls = new ConcurrentCalls();
    const [first, second] = [calls.enter('a', 'account', limits), calls.enter('a', 'account', limits)];
    for (const each of [first, first, second]) if (each.outcome === 'entered') each.leave();
    expect(calls.size).to.equal(0);
  });
});
