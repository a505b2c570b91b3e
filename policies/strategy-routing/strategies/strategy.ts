import type { ModelRequest } from '../../../core/calls/call';
import type { Candidate } from '../../../core/catalog/catalog';
import type { CandidateFacts } from '../../../core/health/gauge';

/** The facts about a call that strategies use. */
export interface Asked {
  readonly request: Pick<ModelRequest, 'inputTokensEstimate' | 'maxOutputTokens' | 'choices'>;
  /** The output tokens of one recent answer of this model; undefined while unknown. */
  readonly outputTokens: number | undefined;
  /** How many input tokens a call had for each estimated one. */
  readonly inputShare: number;
  /** The share of input tokens that sessions read from caches recently, 0 to 1. */
  readonly sessionReadShare: number;
}

/** The meaning of "best". Its functions are pure. */
export interface Strategy {
  /** Returns the score of a candidate; the lowest is tried first. */
  score(candidate: Candidate, facts: CandidateFacts, asked: Asked): number;
  /** Returns how far the score may be off by chance. Candidates whose scores differ by no more are equals and share the load by weight. */
  noise(facts: CandidateFacts): number;
}

/** A score above all others. It is finite, because it is written into JSON. */
export const LAST = 1e9;

/** The share by which two times may differ and still count as equal. */
const SAME_SHARE = 0.2;

/** Returns how far a measured time may be off by chance, as a share of it; 0 if the time is unknown. */
export function latencyNoise({ latencyMs, latencyDeviationMs }: CandidateFacts): number {
  return latencyMs === undefined ? 0 : Math.max(SAME_SHARE, latencyDeviationMs / Math.max(1, latencyMs));
}
