import type { CandidateFacts } from '../../../core/health/gauge';
import { LAST, latencyNoise, type Strategy } from './strategy';

/** The lowest success rate assumed, because a candidate that hardly ever answers is not infinitely slow. */
const LEAST_SUCCESS = 0.02;

/**
 * Ranks by the shortest expected time to the first token, including the time of failed attempts. An untried candidate comes first,
 * one that another call is trying comes last.
 */
export const bySpeed: Strategy = {
  score: (_candidate, facts) => expectedMs(facts),
  noise: (facts) => latencyNoise(facts) * expectedMs(facts),
};

function expectedMs({ latencyMs, failureRate, isUntried }: CandidateFacts): number {
  if (isUntried) return 0;
  return latencyMs === undefined ? LAST : latencyMs / Math.max(LEAST_SUCCESS, 1 - failureRate);
}
