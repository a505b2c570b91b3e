import { expect } from 'chai';
import * as fc from 'fast-check';
import { UpstreamHealth } from '../../../core/health/health';
import { choose, openCandidateSet, type RankingInput } from '../../../policies/strategy-routing/choose';
import { Exploration } from '../../../policies/strategy-routing/explore';
import { byQuality } from '../../../policies/strategy-routing/strategies/quality';
import { bySpeed } from '../../../policies/strategy-routing/strategies/speed';
import type { Strategy } from '../../../policies/strategy-routing/strategies/strategy';
import { sampleCandidate } from '../../support/catalog-samples';
import { seeded } from '../../support/random';
import { sampleModelRequest } from '../../support/request-sample';

interface Sharing {
  readonly strategy: Strategy;
  readonly seed: number;
  readonly weights: readonly number[];
  /** The longest and the shortest time of an answer, for every upstream. */
  readonly ms: number;
  readonly scatter: number;
  /** The factor of each upstream on `ms`. */
  readonly slower?: readonly number[];
  /** How many times longer one answer in a hundred takes. */
  readonly stall?: number;
}

const CALLS = 500;

/** Returns the share of the calls for which each upstream was the first choice. */
function sharesOf({ strategy, seed, weights, ms, scatter, slower = [], stall = 1 }: Sharing): number[] {
  const { below } = seeded(seed);
  const random = () => below(2 ** 30) / 2 ** 30;
  let nowMs = 1_000_000;
  const health = new UpstreamHealth({ now: () => nowMs });
  const candidates = weights.map((weight, at) => sampleCandidate(`u${at}`, { upstream: { weight } }));
  const set = openCandidateSet(candidates, health);
  const exploration = new Exploration();
  const counts = weights.map(() => 0);
  const asked = {
    request: sampleModelRequest({ stream: true }),
    outputTokens: undefined,
    inputShare: 1,
    sessionReadShare: 0,
  };
  for (let call = 0; call < CALLS; call += 1, nowMs += 200) {
    const input: RankingInput = { strategy, asked, kind: 'stream', nowMs, session: undefined, random };
    const { order, asks } = exploration.explore(choose(set, input), set, input);
    if (asks !== undefined) health.asked(asks);
    const first = order[0] ?? 0;
    counts[first] = (counts[first] ?? 0) + 1;
    // Times are mostly near the middle; one in a hundred stalls.
    const stalled = random() < 0.01 ? stall : 1;
    const took = stalled * ms * (slower[first] ?? 1) * (1 + scatter * (random() - 0.5) + (random() < 0.03 ? 2 : 0));
    health.answered(candidates[first] ?? sampleCandidate('none'), { accountId: 'one', ms: took, stream: true });
  }
  return counts.map((count) => count / CALLS);
}

describe('upstreams that are equally good', () => {
  for (const [name, strategy] of Object.entries({ quality: byQuality, speed: bySpeed })) {
    it(`share the calls equally under ${name}, however long answers take and vary`, () => {
      void fc.assert(
        fc.property(
          fc.nat(1e9),
          fc.double({ min: 0, max: 12, noNaN: true }),
          fc.constantFrom(0.1, 0.4, 0.8, 1.2),
          (seed, log, scatter) => {
            const [first] = sharesOf({ strategy, seed, weights: [1, 1], ms: Math.exp(log), scatter });
            expect(first).to.be.within(0.35, 0.65);
          },
        ),
        { numRuns: 300, seed: 1 },
      );
    });

    it(`share the calls under ${name} even if an answer of either stalls now and then`, () => {
      void fc.assert(
        fc.property(fc.nat(1e9), fc.constantFrom(10, 100), (seed, stall) => {
          const [first] = sharesOf({ strategy, seed, weights: [1, 1], ms: 5, scatter: 0.4, stall });
          expect(first).to.be.within(0.25, 0.75);
        }),
        { numRuns: 200, seed: 1 },
      );
    });

    it(`share the calls by their weights under ${name}`, () => {
      void fc.assert(
        fc.property(fc.nat(1e9), (seed) => {
          const [heavy] = sharesOf({ strategy, seed, weights: [3, 1], ms: 300, scatter: 0.4 });
          expect(heavy).to.be.within(0.6, 0.9);
        }),
        { numRuns: 100, seed: 1 },
      );
    });

    it(`are not equal under ${name} if one takes twice as long`, () => {
      void fc.assert(
        fc.property(fc.nat(1e9), (seed) => {
          const [quick] = sharesOf({ strategy, seed, weights: [1, 1], ms: 300, scatter: 0.4, slower: [1, 2] });
          expect(quick).to.be.above(0.8);
        }),
        { numRuns: 100, seed: 1 },
      );
    });
  }
});
