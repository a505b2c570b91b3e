import type { ModelRequest } from '../../../core/call';
import type { Candidate } from '../../../core/catalog';
import type { CandidateFacts } from '../../../core/upstream-gauge';

/** What is asked, as far as a strategy looks at it. */
export interface Asked {
  readonly request: Pick<ModelRequest, 'inputTokensEstimate' | 'maxOutputTokens' | 'choices'>;
  /** Output tokens of one answer of this model lately; undefined while unknown. */
  readonly outputTokens: number | undefined;
  /** Input tokens there were per estimated one. */
  readonly inputShare: number;
}

/** What "best" means: a number per candidate, the lowest is asked first, equals share the load by weight. Pure. */
export type Strategy = (candidate: Candidate, facts: CandidateFacts, asked: Asked) => number;

/** Above every other score, and still finite: it is written into JSON. */
export const LAST = 1e9;
