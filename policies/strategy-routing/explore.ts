import type { Candidate } from '../../core/catalog/catalog';
import type { CandidateFacts, ModelGauge } from '../../core/health/gauge';
import { halved } from '../../core/health/moving-estimate';
import { type CandidateSet, type Choice, type RankingInput, scoreOf } from './choose';

/** One call in so many may ask somebody who is not the best choice, to find out whether they have become it. */
const EXPLORES_ONE_IN = 20;

/** After so long without a measurement a time is believed to be half as long. */
const BELIEVED_HALF_MS = 30_000;

/** What is believed changes by a five-hundredth meanwhile: who is not found is not looked for again. */
const LOOKS_EVERY_MS = 100;

/**
 * Who was slow once is not asked again, and would never be known to have recovered. So what is believed of a time shrinks
 * while nobody measures it, and when the shrunken one would be the best choice, one call asks.
 */
export class Exploration {
  #credit = 1;
  /** When somebody was last looked for in vain. */
  readonly #lookedMs = { stream: new WeakMap<CandidateSet, number>(), whole: new WeakMap<CandidateSet, number>() };

  explore(choice: Choice, set: CandidateSet, input: RankingInput): Choice {
    this.#credit = Math.min(1, this.#credit + 1 / EXPLORES_ONE_IN);
    const { order, asks } = choice;
    if (this.#credit < 1 || asks !== undefined || order.length < 2) return choice;
    const lookedMs = this.#lookedMs[input.kind];
    if (input.nowMs - (lookedMs.get(set) ?? Number.NEGATIVE_INFINITY) < LOOKS_EVERY_MS) return choice;
    const explored = promising(order, set, input);
    if (explored === undefined) {
      lookedMs.set(set, input.nowMs);
      return choice;
    }
    this.#credit = 0;
    return { order: [explored, ...order.filter((each) => each !== explored)], asks: set.gauges[explored] };
  }
}

/** The one that would be the best if what is believed of it were out of date. */
function promising(
  [first = 0, ...others]: readonly number[],
  set: CandidateSet,
  input: RankingInput,
): number | undefined {
  if (set.gauges[first]?.isResting === true) return undefined;
  let best = scoreOf(set, first, input);
  let found: number | undefined;
  for (const index of others) {
    const gauge = set.gauges[index] as ModelGauge;
    if (gauge.isResting || gauge.latencyMs === undefined || !gauge.mayBeAsked) continue;
    const score = input.strategy.score(set.candidates[index] as Candidate, shrunken(gauge, input), input.asked);
    if (score >= best) continue;
    best = score;
    found = index;
  }
  return found;
}

function shrunken(gauge: ModelGauge, { kind, nowMs }: RankingInput): CandidateFacts {
  const {
    latencyMs = 0,
    latencyDeviationMs,
    failureRate,
    isUntried,
    isBeingTried,
    cacheReadShare,
    sessionReadShare,
  } = gauge;
  const believedMs = latencyMs * halved(gauge.silentMs(kind, nowMs), BELIEVED_HALF_MS);
  const unchanged = { latencyDeviationMs, failureRate, isUntried, isBeingTried, cacheReadShare, sessionReadShare };
  return { latencyMs: believedMs, ...unchanged };
}
