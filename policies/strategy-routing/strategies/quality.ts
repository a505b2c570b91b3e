import { TIERS } from '../../../core/catalog/catalog';
import type { CandidateFacts } from '../../../core/health/gauge';
import { latencyNoise, type Strategy } from './strategy';

/**
 * Official sources first, then those that answer most reliably, then the quicker. Reliability is put into classes before it is
 * compared. Times are compared as logarithms: less than half as long again is equal, so that noise moves no calls.
 */
export const byQuality: Strategy = {
  score: ({ upstream }, facts) =>
    TIERS.indexOf(upstream.tier) * 10_000 + failureClass(facts.failureRate) * 1_000 + latencySteps(facts),
  noise: (facts) => (facts.latencyMs === undefined ? 0 : Math.max(1, stepsDown(latencyNoise(facts)))),
};

/** The least that is left of a time when chance is taken off: one answer can be most of what is known. */
const LEAST_LEFT = 0.01;

/**
 * The same for a call of a session, whose prompt cache is worth more than a quicker upstream: candidates of one tier are equals, and
 * only one that fails often comes behind. A single failure moves no session, because the next candidate serves that call.
 */
export const bySessionQuality: Strategy = {
  score: ({ upstream }, { failureRate }) => {
    const failing = failureClass(failureRate);
    return TIERS.indexOf(upstream.tier) * 10_000 + (failing < FAILS_OFTEN ? 0 : failing * 1_000);
  },
  noise: () => 0,
};

/** The failure class from which on sessions move: more than 15 % of the attempts failed. */
const FAILS_OFTEN = 2;

/** How many steps a time is above what is left of it without this share. One slow answer makes the share nearly the whole. */
function stepsDown(share: number): number {
  return -Math.log(Math.max(LEAST_LEFT, 1 - share)) / STEP;
}

/** 0 to 4: up to 5, 15, 40, 75 % of the attempts failed. One failure in a row of answers is class 1 for a quarter of a minute. */
function failureClass(rate: number): number {
  if (rate <= 0.05) return 0;
  if (rate <= 0.15) return 1;
  if (rate <= 0.4) return 2;
  return rate <= 0.75 ? 3 : 4;
}

const STEP = Math.log(1.5);

/** One more for each half as long again. Who is untried goes first, who is being tried goes last. */
function latencySteps({ latencyMs, isUntried, isBeingTried }: CandidateFacts): number {
  if (isUntried) return 0;
  if (isBeingTried || latencyMs === undefined) return 999;
  return 1 + Math.log(Math.max(1, latencyMs)) / STEP;
}
