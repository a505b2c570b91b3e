import { expect } from 'chai';
import type { Guard, Rollout, RolloutGroup } from '../../../core/rollouts/rollout';
import {
  decideRollout,
  type Looks,
  type RolloutDecision,
  type RolloutProgress,
} from '../../../plugins/rollouts/decide';
import { bucketOf, countKeyOf, type GuardCounts, intervalOf, type Measure } from '../../../plugins/rollouts/guards';
import { seeded } from '../../support/random';
import { type Behaviour, type Simulation, simulate, USUAL } from './simulated-rollout';

const GUARDS: readonly Guard[] = [
  { name: 'errorRate', above: 0.02, times: 1, minCalls: 20 },
  { name: 'p95FirstTokenMs', above: 0.05, times: 1.2, minCalls: 20 },
  { name: 'costRatio', above: 0.1, times: 1.05, minCalls: 20 },
];

function rolloutOf(shares: readonly number[], more: Partial<Rollout> = {}): Rollout {
  return {
    name: 'next',
    change: { kind: 'version', alias: 'a', model: 'b' },
    stickyBy: 'request',
    include: new Set(),
    exclude: new Set(),
    stages: shares.map((share) => ({ share, holdMs: 60_000 })) as unknown as Rollout['stages'],
    guards: GUARDS,
    shadow: 0,
    onAbort: 'rollback',
    definition: 'd',
    ...more,
  };
}

const ROLLOUT = rolloutOf([0.01, 0.1, 0.5, 1]);
const WORSE: Looks = { errorRate: { seen: 20, isWorse: true } };

describe('the confidence interval of a share of calls', () => {
  it('equals the Wilson interval of published tables', () => {
    expect(intervalOf({ of: 10, beyond: 0 }).most).to.be.closeTo(0.2775, 1e-4);
    expect(intervalOf({ of: 10, beyond: 1 }).least).to.be.closeTo(0.0179, 1e-4);
    expect(intervalOf({ of: 100, beyond: 12 }).least).to.be.closeTo(0.07, 1e-3);
    expect(intervalOf({ of: 100, beyond: 12 }).most).to.be.closeTo(0.1981, 1e-4);
  });
});

describe('a decision about a rollout', () => {
  /** Returns counts of calls that each cost `cost`, and took `ms` to their first content or answer. */
  const calls = (
    of: number,
    { errors = 0, ms = 400, cost = 1e5, measure = 'firstToken' as Measure } = {},
  ): GuardCounts =>
    new Map([
      [countKeyOf('calls'), of],
      [countKeyOf('errors'), errors],
      [countKeyOf('cost', bucketOf(cost)), of],
      [countKeyOf(measure, bucketOf(ms)), of],
    ]);
  const decided = (
    seen: Partial<Record<`${number} ${RolloutGroup}`, GuardCounts>>,
    { nowMs = 59_999, ...progress }: Partial<RolloutProgress> & { readonly nowMs?: number } = {},
    rollout = ROLLOUT,
  ): RolloutDecision =>
    decideRollout(
      rollout,
      { status: 'running', stage: 1, stageSinceMs: 0, looks: {}, ...progress },
      (stage, group) => seen[`${stage} ${group}`],
      nowMs,
    );
  const equal = { '1 treatment': calls(30), '1 control': calls(3_000, { errors: 30 }) };
  const failing = { '1 treatment': calls(30, { errors: 9 }), '1 control': calls(3_000, { errors: 3 }) };

  it('waits until the current stage is over, then advances the rollout to the next stage', () => {
    expect(decided(equal).do).to.equal('wait');
    expect(decided(equal, { nowMs: 60_000 })).to.include({ do: 'advance' });
    const last = { '4 treatment': calls(300), '3 control': calls(300) };
    expect(decided(last, { stage: 4, nowMs: 60_000 })).to.include({ do: 'complete' });
  });

  it('waits until each guard has the number of calls that it requires, and reports how many calls it has seen', () => {
    const few = { '1 treatment': calls(7), '1 control': calls(900) };
    const { do: what, why } = decided(few, { nowMs: 1e9 });
    expect(what).to.equal('wait');
    expect(why).to.contain('errorRate has seen 7 calls of the treatment group and 900 of the control group, of 20');
    const { why: sticky } = decided(few, { nowMs: 1e9 }, { ...ROLLOUT, stickyBy: 'account' });
    expect(sticky).to.contain('of 20 (at most 2 of each account count)');
  });

  it('ignores guards in a stage that only the accounts of `include` have reached', () => {
    expect(decided({}, { nowMs: 60_000 }, rolloutOf([0, 1])).do).to.equal('advance');
  });

  it('aborts if two successive looks of a guard find the treatment worse, and gives the reason in numbers', () => {
    const first = decided(failing, { nowMs: 60_000 });
    expect(first).to.deep.include({ do: 'wait', why: 'errorRate, which looks again at 10 more calls' });
    expect(first.looks.errorRate).to.deep.equal({ seen: 30, isWorse: true });
    expect(decided({ ...failing, '1 treatment': calls(39, { errors: 9 }) }, first).do).to.equal('wait');
    const second = decided({ ...failing, '1 treatment': calls(40, { errors: 12 }) }, first);
    expect(second.do).to.equal('abort');
    expect(second.why).to.equal(
      'errorRate: 12 of 40 calls failed (at least 18.1 %), of the control group 3 of 3000 (at most 0.294 %)',
    );
  });

  it("discards a guard's look that found the treatment worse if the guard's next look does not confirm the result", () => {
    const { do: what, looks } = decided(equal, { looks: { ...WORSE, errorRate: { seen: 20, isWorse: true } } });
    expect([what, looks.errorRate]).to.deep.equal(['wait', { seen: 30, isWorse: false }]);
  });

  it("aborts if a larger part of the treatment's calls than of the control group's calls is slow or expensive", () => {
    const looks: Looks = {
      p95FirstTokenMs: { seen: 20, isWorse: true },
      costRatio: { seen: 20, isWorse: true },
    };
    const against = (treatment: GuardCounts) =>
      decided({ '1 treatment': treatment, '1 control': calls(3_000) }, { looks });
    expect(against(calls(40)).do).to.equal('wait');
    expect(against(calls(40, { ms: 440 })).do).to.equal('wait');
    expect(against(calls(40, { ms: 900 })).why).to.match(
      /^p95FirstTokenMs: 40 of 40 streams took longer than 4\d\d ms to their first content \(at least 91\.2 %\)/,
    );
    expect(against(calls(40, { cost: 1.2e5 })).why).to.match(
      /^costRatio: 40 of 40 calls cost more than 0\.0010\d+ USD/,
    );
  });

  it('compares unstreamed calls with unstreamed calls, by the time to their answer', () => {
    const both = (one: GuardCounts, other: GuardCounts) => new Map([...one, ...other]);
    const control = both(calls(3_000), calls(500, { ms: 4_000, measure: 'whole' }));
    const looks: Looks = { p95FirstTokenMs: { seen: 20, isWorse: true } };
    const of = (streams: number, wholes: number, ms: number) =>
      decided(
        { '1 treatment': both(calls(streams), calls(wholes, { ms, measure: 'whole' })), '1 control': control },
        { looks, nowMs: 60_000 },
        { ...ROLLOUT, guards: GUARDS.slice(1, 2) },
      );
    expect(of(5, 40, 4_000).do).to.equal('advance');
    expect(of(40, 40, 9_000).why).to.match(/^p95FirstTokenMs: 40 of 40 unstreamed calls took longer than \d+ ms/);
    expect(of(19, 18, 9_000).why).to.contain('p95FirstTokenMs has seen 19 calls of the treatment group and 3000');
  });

  it('compares a stage of 100 % with the control group of earlier stages', () => {
    const seen = { '4 treatment': calls(40, { errors: 9 }), '4 control': calls(1), '3 control': calls(3_000) };
    expect(decided(seen, { stage: 4, looks: WORSE }).do).to.equal('abort');
  });

  it('does not count the time of a paused rollout, but still evaluates its guards', () => {
    expect(decided(equal, { status: 'paused', nowMs: 60_000 }).do).to.equal('wait');
    expect(decided(failing, { status: 'paused', looks: WORSE }).do).to.equal('abort');
    expect(decided(failing, { status: 'held', looks: WORSE }).do).to.equal('wait');
  });
});

describe('100 simulated rollouts', function () {
  this.timeout(300_000);
  const { below } = seeded(20_261_128);
  const random = () => below(2 ** 32) / 2 ** 32;
  const guards = GUARDS.map((each) => ({ ...each, minCalls: 50 }));
  const aborted = (simulation: Omit<Simulation, 'random'>) =>
    Array.from({ length: 100 }, () => simulate({ ...simulation, random })).filter(({ end }) => end === 'abort');

  const worse: readonly (readonly [what: string, treatment: Behaviour, control?: Behaviour])[] = [
    ['10 percentage points more errors', { ...USUAL, errorRate: USUAL.errorRate + 0.1 }],
    ['10 percentage points more errors than none', { ...USUAL, errorRate: 0.1 }, { ...USUAL, errorRate: 0 }],
    ['calls that are three times as slow', { ...USUAL, firstTokenMs: 3 * USUAL.firstTokenMs }],
    ['calls that are three times as dear', { ...USUAL, cost: 3 * USUAL.cost }],
  ];
  for (const [what, treatment, control = USUAL] of worse) {
    it(`abort within 200 calls in at least 90 cases if the treatment has ${what}`, () => {
      const found = aborted({ rollout: rolloutOf([0.1, 1], { guards }), control, treatment, calls: 200 });
      expect(found.filter(({ calls }) => calls <= 200).length).to.be.at.least(90);
    });
  }

  it('are aborted in less than 2 cases if both groups are equal', () => {
    const found = aborted({
      rollout: rolloutOf([0.2, 0.5, 1], { guards }),
      control: USUAL,
      treatment: USUAL,
      calls: 500,
    });
    expect(found.length, found.map(({ why }) => why).join('\n')).to.be.below(2);
  });

  // Of 100 accounts half are in, and of 1,000 a tenth. 5 % of them fail 30 % of their calls.
  for (const [count, share] of [
    [100, 0.5],
    [1_000, 0.1],
  ] as const) {
    it(`are aborted in less than 5 cases if ${share * 100} % of ${count} accounts get the treatment and some fail often`, () => {
      const accounts = Array.from({ length: count }, (_, index) => (index % 20 === 0 ? 0.3 : 0.005));
      const rollout = rolloutOf([share, 1], { guards, stickyBy: 'account' });
      const found = aborted({ rollout, control: USUAL, treatment: USUAL, accounts, calls: 500 });
      expect(found.length, found.map(({ why }) => why).join('\n')).to.be.below(5);
    });
  }
});
