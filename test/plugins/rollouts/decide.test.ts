import { expect } from 'chai';
import type { Rollout, RolloutGroup } from '../../../core/rollouts/rollout';
import { bucketOf, type GroupCounts, NOTHING_SEEN, type SlotCounts } from '../../../plugins/rollouts/counts';
import { type Decision, decide, FALSE_ABORTS, type Progress } from '../../../plugins/rollouts/decide';
import { failsMore, isBeyondMore, isHigher } from '../../../plugins/rollouts/significance';
import { seeded } from '../../support/random';
import { type Behaviour, simulate, USUAL } from './simulated-rollout';

/** The number of simulated rollouts that last several hours each. */
const LONG_ROLLOUTS = Number(process.env['LONG_ROLLOUTS'] ?? 14);

const GUARDS = [
  { name: 'errorRate', tolerance: 0, minCalls: 20 },
  { name: 'p95FirstTokenMs', tolerance: 1, minCalls: 20 },
  { name: 'costRatio', tolerance: 1, minCalls: 20 },
] as const;

const NO_SLOT: SlotCounts = {
  calls: 0,
  errors: 0,
  charged: 0,
  logCost: 0,
  streams: 0,
  logFirstToken: 0,
  answers: 0,
  logWhole: 0,
};

const ROLLOUT: Rollout = {
  name: 'next',
  change: { is: 'version', alias: 'a', model: 'b' },
  stickyBy: 'request',
  include: new Set(),
  exclude: new Set(),
  stages: [
    { share: 0.01, holdMs: 60_000 },
    { share: 0.1, holdMs: 60_000 },
    { share: 0.5, holdMs: 60_000 },
    { share: 1, holdMs: 60_000 },
  ],
  guards: GUARDS,
  shadow: 0,
  onAbort: 'rollback',
  definition: 'd',
};

describe('the tests of significance', () => {
  it('return the values of published tables', () => {
    // Fisher's lady tasting tea: 3 of 4 against 1 of 4.
    expect(failsMore({ of: 4, failed: 3 }, { of: 4, failed: 1 })).to.be.closeTo(17 / 70, 1e-12);
    expect(failsMore({ of: 50, failed: 3 }, { of: 950, failed: 0 })).to.be.closeTo(1.1796e-4, 1e-7);
    // With one control value and one of the candidate, each is the larger with equal chance.
    expect(isBeyondMore({ of: 1, failed: 1 }, { of: 1, failed: 0 })).to.be.closeTo(1 / 2, 1e-12);
    // No value of 19 is beyond the limit; the chance that 2 others both are is 1/20 × 2/21.
    expect(isBeyondMore({ of: 2, failed: 2 }, { of: 19, failed: 0 })).to.be.closeTo(2 / 420, 1e-12);
    // Means 0 and 2, both with variance 1 and 5 values: t = 3.162 with 8 degrees of freedom.
    expect(isHigher({ of: 5, sum: 10, squares: 24 }, { of: 5, sum: 0, squares: 4 }, 0)).to.be.closeTo(0.00667, 1e-5);
    expect(isHigher({ of: 5, sum: 10, squares: 24 }, { of: 5, sum: 0, squares: 4 }, 2)).to.be.closeTo(0.5, 1e-9);
  });

  it('are certain if nothing varies', () => {
    expect(isHigher({ of: 9, sum: 9, squares: 9 }, { of: 9, sum: 0, squares: 0 }, 0)).to.equal(0);
    expect(isHigher({ of: 9, sum: 9, squares: 9 }, { of: 9, sum: 9, squares: 9 }, 0)).to.equal(1);
    expect(failsMore({ of: 9, failed: 0 }, { of: 9, failed: 0 })).to.be.closeTo(1, 1e-9);
  });

  it('stay exact with large numbers', () => {
    const p = failsMore({ of: 1_000_000, failed: 10_500 }, { of: 1_000_000, failed: 10_000 });
    expect(p).to.be.within(1e-4, 1e-3);
  });
});

describe('a decision about a rollout', () => {
  const counts = (more: Partial<GroupCounts>): GroupCounts => ({ ...NOTHING_SEEN, ...more });
  const equal = (calls: number, errors = 0) =>
    counts({
      calls,
      errors,
      charged: calls,
      logCost: calls,
      logCostSquares: calls,
      firstTokens: new Map([[100, calls]]),
    });
  const decided = (
    seen: Partial<Record<`${number} ${RolloutGroup}`, GroupCounts>>,
    progress: Partial<Progress> = {},
    nowMs = 59_999,
  ): Decision =>
    decide(
      ROLLOUT,
      { status: 'running', stage: 1, stageSinceMs: 0, looks: {}, ...progress },
      (stage, group) => seen[`${stage} ${group}`],
      nowMs,
    );
  const bothEqual = { '1 candidate': equal(30), '1 control': equal(3_000, 30) };

  it('waits until the stage is over, then continues', () => {
    expect(decided(bothEqual).do).to.equal('wait');
    expect(decided(bothEqual, {}, 60_000)).to.include({ do: 'advance' });
    const last = { '4 candidate': equal(300), '3 control': equal(300) };
    expect(decided(last, { stage: 4 }, 60_000)).to.include({ do: 'complete' });
  });

  it('waits for as many calls as each guard requires, and reports how many there are', () => {
    const { do: what, why } = decided({ '1 candidate': equal(7), '1 control': equal(900) }, {}, 1e9);
    expect(what).to.equal('wait');
    expect(why).to.contain('errorRate has seen 7 calls of the treatment group and 900 of the control group, of 20');
  });

  it('ignores guards in a stage with only the included accounts', () => {
    const none: Rollout = { ...ROLLOUT, stages: [{ share: 0, holdMs: 10 }, ...ROLLOUT.stages] };
    const progress = { status: 'running', stage: 1, stageSinceMs: 0, looks: {} } as const;
    expect(decide(none, progress, () => undefined, 10).do).to.equal('advance');
  });

  it('aborts a rollout that fails more, is slower or costs more, and gives the reason in numbers', () => {
    const failing = decided({ '1 candidate': equal(40, 9), '1 control': equal(3_000, 3) });
    expect(failing.do).to.equal('abort');
    expect(failing.why).to.contain('errorRate: 9 of 40 calls failed (22.5 %), of the control group 3 of 3000 (0.1 %)');
    const slow = { ...equal(40), firstTokens: new Map([[bucketOf(900), 40]]) };
    const quick = { ...equal(3_000), firstTokens: new Map([[bucketOf(300), 3_000]]) };
    expect(decided({ '1 candidate': slow, '1 control': quick }).why).to.match(
      /^p95FirstTokenMs: 40 of 40 streams took longer/,
    );
    const dear = { ...equal(40), logCost: 40 * 1.2, logCostSquares: 40 * 1.44 };
    expect(decided({ '1 candidate': dear, '1 control': equal(3_000) }).why).to.match(
      /^costRatio: a call costs 1\.221 times/,
    );
  });

  it('compares unstreamed calls with unstreamed calls, by the time to their answer', () => {
    const times = (streams: readonly [number, number], wholes: readonly [number, number]) => {
      const [firstTokens, wholeAnswers] = [streams, wholes].map(([ms, calls]) => new Map([[bucketOf(ms), calls]]));
      return { ...equal(streams[1] + wholes[1]), firstTokens, wholeAnswers } as GroupCounts;
    };
    const control = times([300, 3_000], [4_000, 500]);
    // Other callers are in this group: more of them stream, or none.
    expect(decided({ '1 candidate': times([300, 5], [4_000, 40]), '1 control': control }).do).to.equal('wait');
    const slow = decided({ '1 candidate': times([300, 40], [9_000, 40]), '1 control': control });
    expect(slow.why).to.match(/^p95FirstTokenMs: 40 of 40 unstreamed calls took longer than \d+ ms to their answer/);
    const few = decided({ '1 candidate': times([300, 19], [9_000, 19]), '1 control': control }, {}, 60_000);
    expect(few.why).to.contain(
      'p95FirstTokenMs has seen 19 calls of the treatment group and 3000 of the control group',
    );
  });

  it('detects a failing candidate even if one caller of the control group only sends bad requests', () => {
    const slot = (calls: number, errors: number) => ({ ...NO_SLOT, calls, errors, charged: calls });
    const right = Array.from({ length: 31 }, (_, index) => [index, slot(300, 3)] as const);
    const control = { ...equal(9_800, 593), slots: new Map([...right, [31, slot(500, 500)] as const]) };
    expect(decided({ '1 candidate': equal(40, 40), '1 control': control }).why).to.match(/^errorRate: 40 of 40/);
  });

  it('tolerates differences up to the configured ones', () => {
    const tolerant: Rollout = { ...ROLLOUT, guards: [{ name: 'costRatio', tolerance: 1.3, minCalls: 20 }] };
    const dear = { ...equal(40), logCost: 40 * 1.2, logCostSquares: 40 * 1.44 };
    const progress = { status: 'running', stage: 1, stageSinceMs: 0, looks: {} } as const;
    const seen = (_: number, group: RolloutGroup) => (group === 'candidate' ? dear : equal(3_000));
    expect(decide(tolerant, progress, seen, 0).do).to.equal('wait');
  });

  it('evaluates the same calls only once, and again when there are a quarter more calls', () => {
    const first = decided(bothEqual);
    const once = { times: 1, seen: 30 };
    expect(first.looks).to.deep.equal({ errorRate: once, p95FirstTokenMs: once, costRatio: once });
    const worse = { '1 candidate': equal(30, 9), '1 control': equal(3_000) };
    expect(decided(worse, { looks: first.looks }).do).to.equal('wait');
    expect(decided({ ...worse, '1 candidate': equal(38, 9) }, { looks: first.looks }).do).to.equal('abort');
  });

  it("evaluates after a guard's number of new calls, however many it has evaluated", () => {
    const looks = { errorRate: { times: 300, seen: 100_000 } };
    const late = (more: number) => ({
      '3 candidate': equal(100_000 + more, 1_000 + more),
      '3 control': equal(100_000, 1_000),
    });
    expect(decided(late(19), { stage: 3, looks }).looks.errorRate?.times).to.equal(300);
    expect(decided(late(400), { stage: 3, looks }).do).to.equal('abort');
  });

  it('evaluates again if a guard requires more calls than before', () => {
    const looks = { errorRate: { times: 30, seen: 1_000 } };
    const demanding: Rollout = { ...ROLLOUT, guards: [{ name: 'errorRate', tolerance: 0, minCalls: 2_000 }] };
    const progress = { status: 'running', stage: 1, stageSinceMs: 0, looks } as const;
    const seen = (_: number, group: RolloutGroup) => (group === 'candidate' ? equal(2_000, 200) : equal(3_000, 3));
    expect(decide(demanding, progress, seen, 0).do).to.equal('abort');
  });

  it('compares a stage of 100 % with the control group of earlier stages', () => {
    const seen = { '4 candidate': equal(40, 9), '4 control': equal(1), '3 control': equal(3_000, 3) };
    expect(decided(seen, { stage: 4 }).do).to.equal('abort');
  });

  it('stops the clock of a paused rollout, but not its guards', () => {
    expect(decided(bothEqual, { status: 'paused' }, 60_000).do).to.equal('wait');
    const worse = { '1 candidate': equal(40, 9), '1 control': equal(3_000) };
    expect(decided(worse, { status: 'paused' }).do).to.equal('abort');
    expect(decided(worse, { status: 'held' }).do).to.equal('wait');
  });
});

describe('simulated rollouts', function () {
  this.timeout(180_000);
  const { below } = seeded(20_261_121);
  const random = () => below(2 ** 32) / 2 ** 32;
  const brisk: Rollout = { ...ROLLOUT, stages: ROLLOUT.stages.map((each) => ({ ...each, holdMs: 24_000 })) as never };
  const run = (candidate: Behaviour, control: Behaviour, rollout = ROLLOUT) =>
    simulate({ rollout, control, candidate, callsPerSecond: 25, random });
  const runEqual = (behaviour: Behaviour) => run(behaviour, behaviour, brisk);
  const CONTROLS: readonly Behaviour[] = [
    USUAL,
    { ...USUAL, errorRate: 0.0005, timeSpread: 1.2, wholeShare: 0.5 },
    { ...USUAL, errorRate: 0.2, costSpread: 2.5 },
    { ...USUAL, errorRate: 0, timeSpread: 0.1, costSpread: 0.1 },
  ];

  it(`with an equal candidate are rarely aborted: at most ${FALSE_ABORTS * 100} % of 1,000`, () => {
    const aborted = Array.from({ length: 1_000 }, (_, index) =>
      runEqual(CONTROLS[index % CONTROLS.length] ?? USUAL),
    ).filter(({ end }) => end === 'abort');
    if (process.env['SHOW_FIGURES'] !== undefined) console.log('false aborts', aborted.length);
    expect(aborted.length, aborted.map(({ why }) => why).join('\n')).to.be.at.most(10);
  });

  it('are as rarely aborted if callers differ and few are included, but still detect a failing candidate', () => {
    const callers = { count: 300, activity: 1, errors: 1, times: 0.3, costs: 1 };
    const long: Rollout = {
      ...ROLLOUT,
      stickyBy: 'account',
      stages: ROLLOUT.stages.map(({ share }) => ({ share: Math.max(share, 0.03), holdMs: 400_000 })) as never,
    };
    const ends = (candidate: Behaviour) =>
      Array.from({ length: LONG_ROLLOUTS }, () =>
        simulate({ rollout: long, control: USUAL, candidate, callers, callsPerSecond: 25, random }),
      ).filter(({ end }) => end === 'abort');
    const equal = ends(USUAL);
    if (process.env['SHOW_FIGURES'] !== undefined) console.log('false aborts of few callers', equal.length);
    expect(equal.length, equal.map(({ why }) => why).join('\n')).to.be.at.most(Math.ceil(LONG_ROLLOUTS * 0.02));
    expect(ends({ ...USUAL, errorRate: 0.2 })).to.have.length(LONG_ROLLOUTS);
  });

  const worse: readonly { what: string; candidate: Behaviour; control?: Behaviour; hurtAtMost: number }[] = [
    {
      what: 'that fails 5 % of its calls',
      candidate: { ...USUAL, errorRate: 0.05 },
      control: { ...USUAL, errorRate: 0.001 },
      hurtAtMost: 15,
    },
    { what: 'that fails half of its calls', candidate: { ...USUAL, errorRate: 0.5 }, hurtAtMost: 20 },
    { what: 'that is half as slow again', candidate: { ...USUAL, firstTokenMs: 600 }, hurtAtMost: 15 },
    {
      what: 'that is half as slow again where nothing is streamed',
      candidate: { ...USUAL, firstTokenMs: 600, wholeShare: 1 },
      control: { ...USUAL, wholeShare: 1 },
      hurtAtMost: 15,
    },
    { what: 'that is half as dear again', candidate: { ...USUAL, cost: 1.5e5 }, hurtAtMost: 15 },
  ];
  for (const { what, candidate, control = USUAL, hurtAtMost } of worse) {
    it(`with a candidate ${what} are aborted before the end, with few callers affected`, () => {
      const ends = Array.from({ length: 100 }, () => run(candidate, control));
      expect(ends.filter(({ end }) => end === 'abort').length).to.equal(100);
      const mean = (read: (end: (typeof ends)[number]) => number) =>
        ends.reduce((sum, end) => sum + read(end), 0) / ends.length;
      expect(
        mean(({ hurt }) => hurt),
        'calls that failed',
      ).to.be.below(hurtAtMost);
      expect(
        mean(({ stage }) => stage),
        'stage',
      ).to.be.below(3);
      if (process.env['SHOW_FIGURES'] !== undefined)
        console.log(what, {
          failed: mean(({ hurt }) => hurt),
          seconds: mean(({ seconds }) => seconds),
          stage: mean(({ stage }) => stage),
        });
    });
  }
});
