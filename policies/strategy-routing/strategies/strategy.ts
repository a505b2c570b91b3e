import type { ModelRequest } from '../../../core/call';
import type { Candidate } from '../../../core/catalog';
import type { UpstreamFacts } from '../../../core/upstream-health';

/** What a strategy may look at. */
export interface LiveFacts {
  readonly request: ModelRequest;
  of(upstream: string): UpstreamFacts;
}

/** Compares two candidates; negative when the first is to be asked first. Pure. */
export type Ranker = (first: Candidate, second: Candidate, facts: LiveFacts) => number;
