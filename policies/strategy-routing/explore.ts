import { halved } from '../../core/moving-estimate';
import type { CandidateFacts } from '../../core/upstream-gauge';
import type { Choice, Ranked, Wish } from './choose';

/** One call in so many may ask somebody who is not the best choice, to find out whether they have become it. */
const EXPLORES_ONE_IN = 20;

/** After so long without news a time that was measured is believed to be half as long. */
const BELIEVED_HALF_MS = 30_000;

/**
 * Who was slow once is not asked again, and would never be known to have recovered. So what is believed of a time shrinks
 * while nobody measures it, and when the shrunken one would be the best choice, one call asks.
 */
export class Exploration {
  #credit = 1;

  explore(choice: Choice, wish: Wish): Choice {
    this.#credit = Math.min(1, this.#credit + 1 / EXPLORES_ONE_IN);
    const { ranked, asks } = choice;
    if (this.#credit < 1 || asks !== undefined || ranked.length < 2) return choice;
    const explored = promising(ranked, wish);
    if (explored === undefined) return choice;
    this.#credit = 0;
    return { ranked: [explored, ...ranked.filter((each) => each !== explored)], asks: explored.gauge };
  }
}

/** The one that would be the best by far if what is believed of it were out of date. */
function promising([first, ...others]: readonly Ranked[], wish: Wish): Ranked | undefined {
  let best = first?.place ?? 0;
  let found: Ranked | undefined;
  for (const each of others) {
    const { candidate, gauge } = each;
    if (gauge.isResting || gauge.latencyMs === undefined || !gauge.mayBeAsked) continue;
    const score = wish.strategy(candidate, shrunken(gauge), wish.asked);
    if (score >= best) continue;
    best = score;
    found = each;
  }
  return found;
}

function shrunken(gauge: CandidateFacts & { readonly silentMs: number }): CandidateFacts {
  const { latencyMs = 0, failureRate, isUntried, isBeingTried, cacheReadShare, silentMs } = gauge;
  const believedMs = latencyMs * halved(silentMs, BELIEVED_HALF_MS);
  return { latencyMs: believedMs, failureRate, isUntried, isBeingTried, cacheReadShare };
}
