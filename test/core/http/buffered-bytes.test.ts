import { expect } from 'chai';
import { AnswerRoom, type BodyRoom, BufferedBytes } from '../../../core/http/buffered-bytes';

const MB = 1_048_576;

/** Sends bodies of one account at the same time, piece by piece, until each is whole or refused. */
function arriveTogether(budget: BufferedBytes, count: number, bytes: number): number {
  const owner = { accountId: 'account', onEnd: () => undefined };
  let arriving: BodyRoom[] = Array.from({ length: count }, () => budget.open(owner));
  for (let received = 0; received < bytes; received += MB)
    arriving = arriving.filter((room) => {
      try {
        room.add(MB);
        return true;
      } catch {
        return false;
      }
    });
  return arriving.length;
}

describe('The memory for large bodies', () => {
  it('accepts as many bodies of unknown length as fit in memory, even if all arrive at once', () => {
    const budget = new BufferedBytes({ maxBytes: 256 * MB, maxBytesPerAccount: 64 * MB });
    expect(arriveTogether(budget, 30, 20 * MB)).to.equal(3);
  });

  it('is free again after the calls that sent the bodies have ended', () => {
    const budget = new BufferedBytes({ maxBytes: 20 * MB, maxBytesPerAccount: 20 * MB });
    const endings: (() => void)[] = [];
    const owner = { accountId: 'account', onEnd: (work: () => void) => endings.push(work) };
    const whole = budget.open(owner);
    whole.add(15 * MB);
    const refused = budget.open(owner);
    refused.add(5 * MB);
    expect(() => refused.add(MB)).to.throw('at its capacity');
    for (const end of endings) end();
    const next = budget.open(owner);
    next.add(20 * MB);
    expect(() => next.add(1)).to.throw('at its capacity');
  });
});

describe('The memory for answers', () => {
  const limits = { maxBytes: 256 * MB, maxBytesPerAccount: 64 * MB };

  /** Lets an answer arrive, and wait for a client that reads it at once. Returns whether there was room for it. */
  async function passes(budget: BufferedBytes, bytes: number, account = 'account'): Promise<boolean> {
    const room = new AnswerRoom(account, budget);
    for (let arrived = MB; arrived <= bytes; arrived += MB) {
      if (!(await room.arrive(arrived))) return false;
      await new Promise(setImmediate);
    }
    room.wait(bytes);
    await new Promise(setImmediate);
    room.close();
    return true;
  }

  it('has room for all answers of an account whose clients read, however many arrive at once', async () => {
    const budget = new BufferedBytes(limits);
    const passed = await Promise.all(Array.from({ length: 40 }, () => passes(budget, 40 * MB)));
    expect(passed).to.deep.equal(passed.map(() => true));
    expect(budget.bytes).to.equal(0);
  });

  it('lets answers of many accounts pass one after the other if they do not fit all at once', async () => {
    const budget = new BufferedBytes(limits);
    const passed = await Promise.all(Array.from({ length: 20 }, (_, at) => passes(budget, 40 * MB, `account ${at}`)));
    expect(passed).to.deep.equal(passed.map(() => true));
  });

  it('has no more room for an account whose clients do not read, but has room for other accounts', async () => {
    const budget = new BufferedBytes(limits);
    const unread = new AnswerRoom('account', budget);
    await unread.arrive(40 * MB);
    unread.wait(40 * MB);
    expect(await Promise.all([passes(budget, 40 * MB), passes(budget, 40 * MB)])).to.deep.equal([false, false]);
    expect(budget.bytes).to.equal(40 * MB);
    expect(await passes(budget, 40 * MB, 'another account')).to.equal(true);
    expect(await passes(budget, 20 * MB)).to.equal(true);
    unread.close();
    expect(await passes(budget, 64 * MB)).to.equal(true);
    expect(budget.bytes).to.equal(0);
  });

  it('rejects a complete answer that exceeds the limit, and is free again after each answer', () => {
    const budget = new BufferedBytes(limits);
    const [one, two] = [new AnswerRoom('account', budget), new AnswerRoom('account', budget)];
    one.wait(60 * MB);
    expect(() => two.wait(5 * MB)).to.throw('at its capacity');
    one.wait(2 * MB);
    two.wait(5 * MB);
    expect(budget.bytes).to.equal(7 * MB);
    for (const room of [one, two, two]) room.close();
    two.wait(5 * MB);
    expect(budget.bytes).to.equal(0);
  });
});
