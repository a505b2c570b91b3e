import { expect } from 'chai';
import { ConcurrentCalls } from '../../../core/accounts/concurrent-calls';
import type { GatewayError } from '../../../core/base/errors';

describe('concurrent calls', () => {
  const limits = { perKey: 2, perAccount: 3 };

  const of = (keyId: string, accountId = 'account') => ({ keyId, accountId });

  it('are limited for each key, and for all keys of an account together', () => {
    const calls = new ConcurrentCalls();
    const outcomes = ['a', 'a', 'a', 'b', 'b'].map((key) => {
      try {
        return typeof calls.enter(of(key), limits);
      } catch (error) {
        return (error as GatewayError).options.details;
      }
    });
    const [full, fullAccount] = [
      { of: 'key', limit: 2 },
      { of: 'account', limit: 3 },
    ];
    expect(outcomes).to.deep.equal(['function', 'function', full, 'function', fullAccount]);
    expect(() => calls.enter(of('c', 'another account'), limits)).not.to.throw();
  });

  it('free their capacity only once, even if their end is reported twice, and then use no memory', () => {
    const calls = new ConcurrentCalls();
    const [first, second] = [calls.enter(of('a'), limits), calls.enter(of('a'), limits)];
    for (const leave of [first, first, second]) leave();
    expect(calls.size).to.equal(0);
  });
});
