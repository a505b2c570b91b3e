import type { IncomingHttpHeaders } from 'node:http';
import type { Stop } from '../resources';

/** W3C trace context, as headers: which span a request belongs to. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** What a span says beside its name: names and numbers, never content or a credential. What is undefined is left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | string[] | undefined>>;

export interface SpanFacts {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'internal';
  readonly attributes?: Attributes;
  /** How long ago it began; absent: it begins now. */
  readonly ageMs?: number;
}

export interface SpanEnd {
  readonly attributes?: Attributes;
  readonly hasFailed: boolean;
  /** On the clock of `performance.now()`; absent: now. */
  readonly atMs?: number | undefined;
}

/** A span that is sampled and has not ended. */
export interface Span {
  readonly traceId: string;
  /** What services are sent that are asked within it. */
  readonly headers: TraceHeaders;
  /** undefined: the sampler leaves it out. */
  begin(child: SpanFacts): Span | undefined;
  /** The first end counts. */
  end(end: SpanEnd): void;
}

/** A span begins, or the place of one in a trace that is not sampled. */
export interface BegunSpan {
  /** undefined: it is not sampled, and nothing of it is kept. */
  readonly span: Span | undefined;
  readonly headers: TraceHeaders;
}

/** Makes spans and sends them to a collector. */
export interface Tracing {
  /** Begins a span in the trace that a request's headers name; in a new trace where they name none. */
  begin(facts: SpanFacts, parent?: IncomingHttpHeaders): BegunSpan;
  /** Sends what is not sent yet, for a few seconds at most. */
  readonly stop: Stop;
}
