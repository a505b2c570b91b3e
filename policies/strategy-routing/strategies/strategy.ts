import type { ModelRequest } from '../../../core/calls/call';
import type { Candidate } from '../../../core/catalog/catalog';
import type { CandidateFacts } from '../../../core/health/gauge';

/** What is asked, as far as a strategy looks at it. */
export interface Asked {
  readonly request: Pick<ModelRequest, 'inputTokensEstimate' | 'maxOutputTokens' | 'choices'>;
  /** Output tokens of one answer of this model lately; undefined while unknown. */
  readonly outputTokens: number | undefined;
  /** Input tokens there were per estimated one. */
  readonly inputShare: number;
  /** Share of their input tokens that calls of sessions read from caches lately, 0 to 1. */
  readonly sessionReadShare: number;
}

/** What "best" means. Pure. */
export interface Strategy {
  /** The lowest is asked first. */
  score(candidate: Candidate, facts: CandidateFacts, asked: Asked): number;
  /** How far the score may be off by chance. Candidates whose scores differ by no more are equals, and share the load by weight. */
  noise(facts: CandidateFacts): number;
}

/** Above every other score, and still finite: it is written into JSON. */
export const LAST = 1e9;

/** Times of two upstreams that differ by less than a fifth are equal. */
const SAME_SHARE = 0.2;

/** How far a measured time may be off by chance, as a share of it; 0 for a time that is not known. */
export function latencyNoise({ latencyMs, latencyDeviationMs }: CandidateFacts): number {
  return latencyMs === undefined ? 0 : Math.max(SAME_SHARE, latencyDeviationMs / Math.max(1, latencyMs));
}
