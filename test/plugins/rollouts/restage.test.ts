import { expect } from 'chai';
import { restage, watchedAt } from '../../../plugins/rollouts/store';

describe('new stages for a running rollout', () => {
  const stagesOf = (shares: readonly number[]) =>
    shares.map((share) => ({ share, holdMs: 1 })) as unknown as Parameters<typeof restage>[1]['stages'];
  const table: readonly [what: string, shares: number[], stage: number, next: number[], then: number, same: boolean][] =
    [
      ['the same', [0.01, 0.5, 1], 2, [0.01, 0.5, 1], 2, true],
      ['others behind it', [0.01, 0.5, 1], 2, [0.01, 0.5, 0.8, 1], 2, true],
      ['none behind it', [0.01, 0.5, 1], 2, [0.01, 0.5], 2, true],
      ['one between those before it', [0.01, 0.5, 1], 2, [0.01, 0.1, 0.5, 1], 3, false],
      ['one less before it', [0.01, 0.5, 1], 3, [0.5, 1], 2, false],
      ['its own share is smaller', [0.01, 0.5, 1], 2, [0.01, 0.2, 1], 2, false],
      ['its own share is larger', [0.01, 0.5, 1], 2, [0.01, 0.6, 1], 1, false],
      ['all are larger', [0.01, 0.5], 1, [0.1, 1], 1, false],
      ['all are smaller', [0.01, 0.5, 1], 3, [0.01, 0.5], 2, false],
      ['two have its share', [0.5, 1], 1, [0.5, 0.5, 1], 1, true],
    ];
  for (const [what, shares, stage, next, then, same] of table) {
    it(`map stage ${stage} of ${shares} to stage ${then} of ${next} (${what})`, () => {
      expect(restage({ shares, stage }, { stages: stagesOf(next) })).to.deep.equal({ stage: then, isSameSoFar: same });
    });
  }
});

describe('the time that a stage has lasted', () => {
  const at = (seconds: number) => new Date(1_700_000_000_000 + seconds * 1_000);
  const row = { stage_since: at(0), followed_at: at(100) };
  const watched = (status: 'running' | 'paused', seconds: number) => watchedAt({ ...row, status }, at(seconds));

  it('grows while a node watches the rollout, and the node stores it every few seconds', () => {
    expect(watched('running', 104)).to.equal(undefined);
    expect(watched('running', 106)).to.deep.equal({ stage_since: at(0), followed_at: at(106) });
  });
  it('does not grow while no node watches the rollout', () => {
    expect(watched('running', 3_700)).to.deep.equal({ stage_since: at(3_600), followed_at: at(3_700) });
  });
  it('does not change when the clock is set, forwards or back', () => {
    expect(watched('running', -900)).to.deep.equal({ stage_since: at(-1_000), followed_at: at(-900) });
    expect(watched('running', 86_500)).to.deep.equal({ stage_since: at(86_400), followed_at: at(86_500) });
  });
  it('is corrected for a pause only when the rollout resumes', () => {
    expect(watched('paused', 3_700)).to.deep.equal({ stage_since: at(0), followed_at: at(3_700) });
  });
});
