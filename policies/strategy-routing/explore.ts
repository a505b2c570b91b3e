import type { Candidate } from '../../core/catalog/catalog';
import { type CandidateFacts, halved, type ModelGauge } from '../../core/health/gauge';
import { type CandidateSet, type RankingInput, type RoutingChoice, scoreOf } from './choose';

/** At most one call in this many tries a candidate that is not the best, to find out whether it has become the best. */
const EXPLORES_ONE_IN = 20;

/** The time without a measurement after which a measured time counts half, in milliseconds. */
const BELIEVED_HALF_MS = 30_000;

/** How long a search for a candidate is not repeated if it found none, in milliseconds. Assumed times change by only 0.2 % meanwhile. */
const LOOKS_EVERY_MS = 100;

/**
 * Lets single calls try candidates that were slow. Otherwise a slow candidate would receive no calls and its recovery would stay unknown.
 * The assumed time of a candidate therefore shrinks while it is not measured. When the shrunken time makes the candidate the best, one call
 * tries it.
 */
export class Exploration {
  #credit = 1;
  /** The time at which a search last found no candidate of a set, for streams and for unstreamed (`whole`) answers. */
  readonly #lookedMs = { stream: new WeakMap<CandidateSet, number>(), whole: new WeakMap<CandidateSet, number>() };

  explore(choice: RoutingChoice, set: CandidateSet, input: RankingInput): RoutingChoice {
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

/**
 * Returns the candidate that is the best if its old measured time is assumed to shrink; undefined if there is none. A candidate that needs
 * a translation does not compete with a native one.
 */
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
    if (set.last[index] !== set.last[first]) continue;
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
