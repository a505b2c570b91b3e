import type { IncomingHttpHeaders } from 'node:http';
import type { Stop } from '../resources';

/** A W3C trace context as headers. It says which span a request belongs to. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** The attributes of a span: names and numbers, never content or a credential. Undefined ones are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | string[] | undefined>>;

export interface SpanFacts {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'internal';
  readonly attributes?: Attributes;
  /** How long ago the span began; undefined: it begins now. */
  readonly ageMs?: number;
}

export interface SpanEnd {
  readonly attributes?: Attributes;
  readonly hasFailed: boolean;
  /** When the span ends, on the clock of `performance.now()`; undefined: now. */
  readonly atMs?: number | undefined;
}

/** A span that is sampled and has not ended. */
export interface Span {
  readonly traceId: string;
  /** The headers for services that are called within the span. */
  readonly headers: TraceHeaders;
  /** Begins a child span; undefined if the sampler drops it. */
  begin(child: SpanFacts): Span | undefined;
  /** Ends the span. The first end counts. */
  end(end: SpanEnd): void;
}

/** The result of beginning a span. Upstreams get the headers even if the span is not sampled. */
export interface BegunSpan {
  /** undefined: the span is not sampled, and nothing is recorded. */
  readonly span: Span | undefined;
  readonly headers: TraceHeaders;
}

/** Makes spans and sends them to a collector. */
export interface Tracing {
  /** Begins a span in the trace that a request's headers name, or in a new trace if they name none. */
  begin(facts: SpanFacts, parent?: IncomingHttpHeaders): BegunSpan;
  /** Sends the remaining spans, for a few seconds at most. */
  readonly stop: Stop;
}
