import { expect } from 'chai';
import type { Candidate } from '../../../core/catalog/catalog';
import { usageOf } from '../../../core/catalog/usage';
import { UpstreamHealth } from '../../../core/health/health';
import { choose, openCandidateSet, type RankingInput } from '../../../policies/strategy-routing/choose';
import { Exploration } from '../../../policies/strategy-routing/explore';
import { byCost, byQuality, bySpeed, type Strategy } from '../../../policies/strategy-routing/strategies';
import { FAILED, sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { sampleModelRequest } from '../../support/request-sample';

/** The simulated state of an upstream at a moment. */
interface Truth {
  readonly firstTokenMs: number;
  readonly failureRate: number;
  readonly outputTokens: number;
}

interface Simulation {
  readonly strategy: Strategy;
  readonly candidates: readonly Candidate[];
  /** Returns the state at a second of the simulation. */
  truth(upstream: string, second: number): Truth;
  /** Returns the cost of a call in the strategy's own unit: the lower the better. */
  loss(candidate: Candidate, truth: Truth): number;
  readonly callsPerSecond: number;
  readonly seconds: number;
  /** The seconds at which the state changes. The half minute after each is for adapting. */
  readonly changes: readonly number[];
}

const STEADY: Truth = { firstTokenMs: 300, failureRate: 0, outputTokens: 200 };
const INPUT_TOKENS = 4_000;

/** Makes a pseudorandom sequence that is the same every time. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/** Returns the regret: how much worse than the best choice of every moment, as a share; in total, and without the time for adapting. */
function simulate(simulation: Simulation): { regret: number; settledRegret: number } {
  const { strategy, candidates, callsPerSecond, seconds, changes } = simulation;
  const random = seeded(7);
  let nowMs = 0;
  const health = new UpstreamHealth({ now: () => nowMs });
  const set = openCandidateSet(candidates, health);
  const exploration = new Exploration();
  const request = sampleModelRequest({ stream: true, inputTokensEstimate: INPUT_TOKENS, maxOutputTokens: 4_000 });
  const sums = { loss: 0, best: 0, settledLoss: 0, settledBest: 0 };
  for (let call = 0; call < seconds * callsPerSecond; call += 1) {
    nowMs = (call / callsPerSecond) * 1_000;
    const second = nowMs / 1_000;
    const input: RankingInput = {
      strategy,
      asked: { request, ...pick(health) },
      kind: 'stream',
      nowMs,
      session: undefined,
      random,
    };
    const { order, asks } = exploration.explore(choose(set, input), set, input);
    if (asks !== undefined) health.asked(asks);
    const chosen = candidates[order[0] ?? 0] as Candidate;
    const losses = candidates.map((each) => simulation.loss(each, simulation.truth(each.upstream.name, second)));
    const truth = simulation.truth(chosen.upstream.name, second);
    const loss = simulation.loss(chosen, truth);
    const best = Math.min(...losses);
    sums.loss += loss;
    sums.best += best;
    if (!changes.some((change) => second >= change && second < change + 30)) {
      sums.settledLoss += loss;
      sums.settledBest += best;
    }
    live(chosen, truth);
  }
  return { regret: sums.loss / sums.best - 1, settledRegret: sums.settledLoss / sums.settledBest - 1 };

  function live(chosen: Candidate, truth: Truth): void {
    if (random() < truth.failureRate) {
      health.failed(chosen, { outcome: 'reset', status: undefined, verdict: 'next', retryAfterMs: undefined }, FAILED);
      return;
    }
    // Times vary: mostly near the middle, now and then twice as long.
    const scatter = 0.7 + random() * 0.5 + (random() < 0.05 ? 1 : 0);
    health.answered(chosen, { accountId: 'one', ms: truth.firstTokenMs * scatter, stream: true });
    const usage = usageOf({ input: INPUT_TOKENS, output: truth.outputTokens });
    health.used('m', chosen, usage, request);
  }
}

function pick(health: UpstreamHealth): Omit<RankingInput['asked'], 'request'> {
  const { outputTokens, inputShare, sessionReadShare } = health.use('m');
  return { outputTokens, inputShare, sessionReadShare };
}

const report = (name: string, { regret, settledRegret }: { regret: number; settledRegret: number }) =>
  console.log(`      ${name}: regret ${(regret * 100).toFixed(1)} %, settled ${(settledRegret * 100).toFixed(1)} %`);

describe('on upstreams that change, the strategy', () => {
  const five = ['a', 'b', 'c', 'd', 'e'];
  const changes = [0, 120, 240, 360, 480];
  const phase = (second: number) => changes.findLastIndex((change) => second >= change);

  it('`speed` chooses the upstream that is fastest at the moment', () => {
    const outcome = simulate({
      strategy: bySpeed,
      candidates: five.map((name) => sampleCandidate(name)),
      // Another upstream is the quickest in each phase; the others are 1.5 to 3 times as slow.
      truth: (name, second) => ({
        ...STEADY,
        firstTokenMs: [200, 300, 400, 500, 600][(five.indexOf(name) + phase(second) * 2) % 5] ?? 0,
      }),
      loss: (_candidate, { firstTokenMs }) => firstTokenMs,
      callsPerSecond: 5,
      seconds: 600,
      changes,
    });
    report('speed', outcome);
    expect(outcome.settledRegret).to.be.lessThan(0.1);
    expect(outcome.regret).to.be.lessThan(0.2);
  });

  it('`quality` leaves an upstream that begins to fail, and returns to it after it has recovered', () => {
    const outcome = simulate({
      strategy: byQuality,
      candidates: five.map((name) => sampleCandidate(name)),
      // Two of five upstreams fail half of their calls in each phase.
      truth: (name, second) => ({
        ...STEADY,
        failureRate: (five.indexOf(name) + phase(second)) % 5 < 2 ? 0.5 : 0.001,
      }),
      loss: (_candidate, { failureRate }) => 1 + failureRate,
      callsPerSecond: 5,
      seconds: 600,
      changes,
    });
    report('quality', outcome);
    expect(outcome.settledRegret).to.be.lessThan(0.05);
    expect(outcome.regret).to.be.lessThan(0.05);
  });

  it('`cost` learns from the usage in answers which prices matter', () => {
    const prices = { a: [300, 1_500], b: [260, 1_900], c: [400, 1_400] } as const;
    const priceOf = (name: string) => prices[name as keyof typeof prices];
    const outcome = simulate({
      strategy: byCost,
      candidates: ['a', 'b', 'c'].map((name) => {
        const [input, output] = priceOf(name);
        return sampleCandidate(name, { model: { price: samplePrice(BigInt(input), BigInt(output)) } });
      }),
      // b is the cheapest for short answers, a for long ones. Calls allow 4,000 tokens throughout.
      truth: (_name, second) => ({ ...STEADY, outputTokens: second < 240 ? 200 : 3_000 }),
      loss: ({ upstream: { name } }, { outputTokens }) => {
        const [input, output] = priceOf(name);
        return INPUT_TOKENS * input + outputTokens * output;
      },
      callsPerSecond: 5,
      seconds: 600,
      changes: [0, 240],
    });
    report('cost', outcome);
    expect(outcome.settledRegret).to.be.lessThan(0.001);
    expect(outcome.regret).to.be.lessThan(0.01);
  });
});
