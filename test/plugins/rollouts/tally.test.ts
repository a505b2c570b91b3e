import { expect } from 'chai';
import type { SeenCall } from '../../../core/rollouts/live-rollouts';
import { bucketOf } from '../../../plugins/rollouts/counts';
import { Tally } from '../../../plugins/rollouts/tally';

describe('the observations of rollouts in a process', () => {
  const seen = (more: Partial<SeenCall> = {}): SeenCall => ({
    name: 'next',
    run: 'r',
    stage: 1,
    group: 'control',
    isDrawn: true,
    slot: 3,
    isError: false,
    isHurt: false,
    costE8: 100n,
    firstTokenMs: undefined,
    wholeMs: 50,
    ...more,
  });

  it('are counted by group, and kept if they could not be saved', () => {
    const tally = new Tally();
    tally.note(seen());
    tally.note(seen({ isError: true, costE8: 0n, wholeMs: undefined }));
    tally.note(seen({ group: 'candidate', firstTokenMs: 90, wholeMs: undefined }));
    tally.note(seen({ isDrawn: false }));
    const first = tally.take();
    expect(tally.take()).to.deep.equal([]);
    tally.giveBack(first);
    tally.note(seen({ slot: 4 }));
    tally.note(seen({ stage: 2 }));
    const counts = Object.fromEntries(tally.take().map((group) => [`${group.stage} ${group.group}`, group.counts]));
    expect(Object.keys(counts).sort()).to.deep.equal(['1 candidate', '1 control', '2 control']);
    const { '1 control': control, '1 candidate': candidate } = counts;
    expect(control).to.include({ calls: 3, errors: 1, charged: 2, costE8: 200n, hurt: 0 });
    expect(control?.wholeAnswers).to.deep.equal(new Map([[bucketOf(50), 2]]));
    expect([...(control?.slots ?? [])].map(([slot, { calls, errors }]) => [slot, calls, errors])).to.have.deep.members([
      [3, 2, 1],
      [4, 1, 0],
    ]);
    expect(candidate?.firstTokens).to.deep.equal(new Map([[bucketOf(90), 1]]));
    expect(candidate?.slots.size).to.equal(0);
    expect(tally.take()).to.deep.equal([]);
  });
});
