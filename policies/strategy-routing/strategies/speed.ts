import type { CandidateFacts } from '../../../core/health/gauge';
import { LAST, latencyNoise, type Strategy } from './strategy';

/** Somebody who hardly ever answers is not infinitely slow. */
const LEAST_SUCCESS = 0.02;

/**
 * The shortest expected time to the first token, counting that an attempt that fails was for nothing. Who is untried goes
 * first, who is being tried goes last.
 */
export const bySpeed: Strategy = {
  score: (_candidate, facts) => expectedMs(facts),
  noise: (facts) => latencyNoise(facts) * expectedMs(facts),
};

function expectedMs({ latencyMs, failureRate, isUntried }: CandidateFacts): number {
  if (isUntried) return 0;
  return latencyMs === undefined ? LAST : latencyMs / Math.max(LEAST_SUCCESS, 1 - failureRate);
}
