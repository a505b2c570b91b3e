import { expect } from 'chai';
import { type BodyRoom, BufferedBytes } from '../../../core/http/buffered-bytes';

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
  it('accepts as many bodies of unknown length as fit, even if all arrive at once', () => {
    const budget = new BufferedBytes({ mostBytes: 256 * MB, mostBytesOfAccount: 64 * MB });
    expect(arriveTogether(budget, 30, 20 * MB)).to.equal(3);
  });

  it('is free again once its bodies have ended', () => {
    const budget = new BufferedBytes({ mostBytes: 20 * MB, mostBytesOfAccount: 20 * MB });
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
