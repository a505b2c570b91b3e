import { TIERS } from '../../../core/catalog';
import type { Ranker } from './strategy';

/** Official sources first, then those that answer most reliably, then the quicker. */
export const rankByQuality: Ranker = (first, second, facts) => {
  const byTier = TIERS.indexOf(first.upstream.tier) - TIERS.indexOf(second.upstream.tier);
  if (byTier !== 0) return byTier;
  const one = facts.of(first.upstream.name);
  const two = facts.of(second.upstream.name);
  return two.successRate - one.successRate || (one.firstTokenMs ?? 0) - (two.firstTokenMs ?? 0);
};
