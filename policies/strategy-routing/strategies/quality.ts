import { TIERS } from '../../../core/catalog';
import type { CandidateFacts } from '../../../core/upstream-gauge';
import type { Strategy } from './strategy';

/**
 * Official sources first, then those that answer most reliably, then the quicker. Reliability and time are put into classes
 * before they are compared, so that noise moves no calls and those of one class share the load.
 */
export const scoreByQuality: Strategy = ({ upstream }, facts) =>
  TIERS.indexOf(upstream.tier) * 10_000 + failureClass(facts.failureRate) * 1_000 + latencyClass(facts);

/** 0 to 4: up to 5, 15, 40, 75 % of the attempts failed. One failure in a row of answers is class 1 for a quarter of a minute. */
function failureClass(rate: number): number {
  if (rate <= 0.05) return 0;
  if (rate <= 0.15) return 1;
  if (rate <= 0.4) return 2;
  return rate <= 0.75 ? 3 : 4;
}

const CLASS_WIDTH = Math.log(1.5);

/** Each class is half as long again as the one before. Who is untried goes first, who is being tried goes last. */
function latencyClass({ latencyMs, isUntried, isBeingTried }: CandidateFacts): number {
  if (isUntried) return 0;
  if (isBeingTried || latencyMs === undefined) return 999;
  return 1 + Math.floor(Math.log(Math.max(1, latencyMs)) / CLASS_WIDTH);
}
