import type { SseEvent } from '../catalog/upstream';
import type { TraceHeaders } from '../traces/tracing';
import type { AttemptOutcome } from '../wire/dial-failure';
import type { MadeAttempt } from './made-attempt';

/** The trace of a sampled call. */
export interface CallTrace {
  readonly traceId: string;
  /** Begins the span of an attempt; undefined if it is not sampled. `number` is its place from 1, or 0 for a mirror. */
  begin(made: MadeAttempt, number: number): AttemptTrace | undefined;
  /** Ends the span of a failed attempt. The span of an answer ends with its call, and a mirror ends its own. */
  end(made: MadeAttempt): void;
  /** Notes an event of the stream that has a stop reason. */
  noteFinish(event: SseEvent): void;
  /** Notes that the stream has broken off. */
  noteBreak(outcome: AttemptOutcome): void;
}

/** The trace of one attempt at an upstream. */
export interface AttemptTrace {
  /** The headers that make the upstream's own spans part of this one. */
  readonly headers: TraceHeaders | undefined;
  /** Notes a whole unstreamed answer. */
  noteBody(body: unknown): void;
  /** Notes that a stream has its first content. `first` is its first event. */
  noteStream(first: SseEvent | undefined): void;
  end(): void;
}
