import { TIERS } from '../../../core/catalog/catalog';
import type { CandidateFacts } from '../../../core/health/gauge';
import { latencyNoise, type Strategy } from './strategy';

/**
 * Ranks official upstreams first, then the most reliable, then the fastest. Reliability is compared in classes. Times are compared
 * as logarithms: a difference below half as long again is no difference, so that noise moves no calls.
 */
export const byQuality: Strategy = {
  score: ({ upstream }, facts) =>
    TIERS.indexOf(upstream.tier) * 10_000 + failureClass(facts.failureRate) * 1_000 + latencySteps(facts),
  noise: (facts) => (facts.latencyMs === undefined ? 0 : Math.max(1, stepsDown(latencyNoise(facts)))),
};

/** The least share of a time that is left after chance is subtracted. One answer can be most of what is known. */
const LEAST_LEFT = 0.01;

/**
 * Ranks calls of a session, whose prompt cache is worth more than a faster upstream. Candidates of one tier are equals, and only
 * one that fails often comes behind. A single failure moves no session, because the next candidate serves that call.
 */
export const bySessionQuality: Strategy = {
  score: ({ upstream }, { failureRate }) => {
    const failing = failureClass(failureRate);
    return TIERS.indexOf(upstream.tier) * 10_000 + (failing < FAILS_OFTEN ? 0 : failing * 1_000);
  },
  noise: () => 0,
};

/** The failure class from which sessions move: more than 15 % of the attempts failed. */
const FAILS_OFTEN = 2;

/** Returns how many steps a time is above the same time without this share. After one slow answer the share is nearly the whole. */
function stepsDown(share: number): number {
  return -Math.log(Math.max(LEAST_LEFT, 1 - share)) / STEP;
}

/**
 * Returns the class of a failure rate, 0 to 4, with bounds at 5, 15, 40 and 75 %. One failure among answers means class 1 for a
 * quarter of a minute.
 */
function failureClass(rate: number): number {
  if (rate <= 0.05) return 0;
  if (rate <= 0.15) return 1;
  if (rate <= 0.4) return 2;
  return rate <= 0.75 ? 3 : 4;
}

const STEP = Math.log(1.5);

/** Returns a time in steps, each half as long again. An untried candidate comes first, one that another call is trying comes last. */
function latencySteps({ latencyMs, isUntried, isBeingTried }: CandidateFacts): number {
  if (isUntried) return 0;
  if (isBeingTried || latencyMs === undefined) return 999;
  return 1 + Math.log(Math.max(1, latencyMs)) / STEP;
}
