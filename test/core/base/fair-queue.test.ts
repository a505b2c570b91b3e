import { expect } from 'chai';
import { FairQueue } from '../../../core/base/fair-queue';

/** Calls in the order of arrival (`account` and number), and in the order in which the queue serves them. */
const TABLE: readonly (readonly [what: string, pushed: string, served: string])[] = [
  ['serves one account in the order its calls came', 'a1 a2 a3', 'a1 a2 a3'],
  ['serves accounts in turn', 'a1 a2 a3 b1 c1 b2', 'a1 b1 c1 a2 b2 a3'],
  ['lets a late account in after one call of each', 'a1 a2 a3 a4 b1', 'a1 b1 a2 a3 a4'],
  ['serves nothing when nothing waits', '', ''],
];

describe('a queue that serves accounts in turn', () => {
  for (const [what, pushed, served] of TABLE)
    it(what, () => {
      const queue = new FairQueue<string>(10);
      for (const call of pushed.split(' ').filter(Boolean)) queue.push(call.charAt(0), call);
      const order: string[] = [];
      for (let call = queue.shift(); call !== undefined; call = queue.shift()) order.push(call);
      expect(order.join(' ')).to.equal(served);
    });

  it('accepts no more calls than its length, and drops calls that stop waiting', () => {
    const queue = new FairQueue<string>(2);
    expect(['a1', 'a2', 'b1'].map((call) => queue.push(call.charAt(0), call))).to.deep.equal([true, true, false]);
    queue.remove('a', 'a1');
    queue.remove('a', 'a1');
    expect(queue.length).to.equal(1);
    expect(queue.push('b', 'b1')).to.equal(true);
    expect([queue.shift(), queue.shift(), queue.shift()]).to.deep.equal(['a2', 'b1', undefined]);
  });
});
