import type { SseEvent } from '../catalog/upstream';
import type { TraceHeaders } from '../traces/tracing';
import type { AttemptOutcome } from '../wire/dial-failure';
import type { MadeAttempt } from './made-attempt';

/** What is traced of a sampled call. */
export interface CallTrace {
  readonly traceId: string;
  /** Begins the span of an attempt; undefined where the sampler leaves it out. `number` is its place from 1, or 0 for a mirror. */
  begin(made: MadeAttempt, number: number): AttemptTrace | undefined;
  /** Ends the span of an attempt that has failed. That of an answer ends with its call, and a mirror's by itself. */
  end(made: MadeAttempt): void;
  /** Reads an event of the stream that gives a stop reason. */
  noteFinish(event: SseEvent): void;
  /** The stream has broken off. */
  noteBreak(outcome: AttemptOutcome): void;
}

/** What is traced of one attempt at an upstream. */
export interface AttemptTrace {
  /** What the upstream is sent, so that its own spans belong to this one. */
  readonly headers: TraceHeaders;
  /** Reads an answer in one piece, all of which is there. */
  noteBody(body: unknown): void;
  /** A stream has its first content; `first` is its first event. */
  noteStream(first: SseEvent | undefined): void;
  end(): void;
}
