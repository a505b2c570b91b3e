/** The only file that uses OpenTelemetry. A process loads it only if an operator enables traces. */
import type { IncomingHttpHeaders } from 'node:http';
import {
  type Context,
  type DiagLogger,
  DiagLogLevel,
  diag,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import { inTime } from '../in-time';
import type { BegunSpan, Span, SpanEnd, SpanFacts, TraceHeaders, Tracing } from './tracing';

/** How long a stopping process waits until the collector has accepted the last spans. */
const LAST_SPANS_WITHIN_MS = 3_000;

const SERVICE = 'tollgate';
const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;
const PROPAGATOR = new W3CTraceContextPropagator();

/** Reads `OTEL_*` like OpenTelemetry's SDK: sampler, resource, limits, batches and the collector. */
export function startTracing(log: Logger): Tracing {
  diag.setLogger(toLog(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const exporter = new LoggedExporter(new OTLPTraceExporter(), log);
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': SERVICE, 'process.pid': process.pid }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const tracer = provider.getTracer(SERVICE);
  const sendAll = async () => {
    await provider.forceFlush();
    await exporter.forceFlush();
    await provider.shutdown();
  };
  return {
    begin: (facts, parent) => beginSpan(tracer, facts, contextIn(parent)),
    stop: () =>
      inTime(sendAll(), LAST_SPANS_WITHIN_MS, () => new Error('the collector did not accept the spans in time')).catch(
        (error: unknown) =>
          log.warn({ reason: reasonOf(error) }, 'the last spans may be lost: the collector may not have received them'),
      ),
  };
}

/** Returns the trace context of the headers. Malformed headers count as absent. */
function contextIn(headers: IncomingHttpHeaders | undefined): Context {
  if (headers?.['traceparent'] === undefined) return ROOT_CONTEXT;
  return PROPAGATOR.extract(ROOT_CONTEXT, headers, { get: (from, name) => from[name], keys: Object.keys });
}

/** Begins a span. `zeroMs` is the time at which `performance.now()` was 0. All spans of a call share it, so that no child ends after its parent. */
function beginSpan(
  tracer: Tracer,
  { name, kind, attributes, ageMs = 0 }: SpanFacts,
  parent: Context,
  zeroMs = Date.now() - performance.now(),
): BegunSpan {
  const startTime = zeroMs + performance.now() - ageMs;
  const span = tracer.startSpan(name, { kind: KINDS[kind], startTime }, parent);
  const headers = headersOf(span.spanContext());
  if (!span.isRecording()) return { span: undefined, headers };
  if (attributes !== undefined) span.setAttributes(attributes);
  return { span: new SampledSpan(tracer, span, trace.setSpan(parent, span), headers, zeroMs), headers };
}

/**
 * Returns the headers of a span. Most calls are not sampled and need nothing else. The SDK's carrier has the same headers but
 * takes three times as long.
 */
function headersOf({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceHeaders {
  const traceparent = `00-${traceId}-${spanId}-0${traceFlags}`;
  return traceState === undefined ? { traceparent } : { traceparent, tracestate: traceState.serialize() };
}

class SampledSpan implements Span {
  constructor(
    private readonly tracer: Tracer,
    private readonly span: OtelSpan,
    private readonly context: Context,
    readonly headers: TraceHeaders,
    private readonly zeroMs: number,
  ) {}

  get traceId(): string {
    return this.span.spanContext().traceId;
  }

  begin(child: SpanFacts): Span | undefined {
    return beginSpan(this.tracer, child, this.context, this.zeroMs).span;
  }

  end({ attributes, hasFailed, atMs = performance.now() }: SpanEnd): void {
    if (!this.span.isRecording()) return;
    if (attributes !== undefined) this.span.setAttributes(attributes);
    if (hasFailed) this.span.setStatus({ code: SpanStatusCode.ERROR });
    this.span.end(this.zeroMs + atMs);
  }
}

/** Logs once that the collector rejects spans, and once that it accepts them again. Rejected spans are lost. */
class LoggedExporter implements SpanExporter {
  #isFailing = false;

  constructor(
    private readonly exporter: OTLPTraceExporter,
    private readonly log: Logger,
  ) {}

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans, ({ code, error }) => {
      const hasFailed = code !== ExportResultCode.SUCCESS;
      if (hasFailed && !this.#isFailing)
        this.log.warn({ reason: reasonOf(error) }, 'the collector does not accept spans; spans are lost until it does');
      if (!hasFailed && this.#isFailing) this.log.info('the collector accepts spans again');
      this.#isFailing = hasFailed;
      // The exporter reports success, because the SDK would log the failure again for every batch.
      done({ code: ExportResultCode.SUCCESS });
    });
  }

  forceFlush(): Promise<void> {
    return this.exporter.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown();
  }
}

/** Returns the message alone, because an exporter's error also contains the collector's answer. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** Logs what the SDK reports about its settings. The SDK may repeat itself with every span, so each text is logged once, whatever number it has. */
function toLog(log: Logger): DiagLogger {
  const logged = new Set<string>();
  const warn = (text: string) => {
    const kind = text.replaceAll(/\d+/g, '0');
    if (logged.has(kind)) return;
    logged.add(kind);
    log.warn({ from: 'opentelemetry' }, text);
  };
  const silent = () => undefined;
  return { error: warn, warn, info: silent, debug: silent, verbose: silent };
}
