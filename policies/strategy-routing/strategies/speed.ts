import type { Ranker } from './strategy';

/** The lowest current time to the first token; who was never seen is tried first. */
export const rankBySpeed: Ranker = (first, second, facts) =>
  (facts.of(first.upstream.name).firstTokenMs ?? 0) - (facts.of(second.upstream.name).firstTokenMs ?? 0);
