/** The only file that uses the SDK of OpenTelemetry. A process loads it only if an operator enables traces. */
import { type DiagLogger, DiagLogLevel, diag, propagation, trace } from '@opentelemetry/api';
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
import type { Stop } from '../base/resources';
import { withTimeout } from '../base/with-timeout';
import { tracing } from './tracing';

/** How long a stopping process waits until the collector has accepted the last spans. */
const LAST_SPANS_WITHIN_MS = 3_000;

const SERVICE = 'tollgate';

/**
 * Reads `OTEL_*` like OpenTelemetry's SDK: sampler, resource, limits, batches and the collector. Returns a function that sends the
 * remaining spans, in a few seconds at most.
 */
export function startTracing(log: Logger): Stop {
  diag.setLogger(toLog(log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const exporter = new LoggedExporter(new OTLPTraceExporter(), log);
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': SERVICE, 'process.pid': process.pid }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  trace.setGlobalTracerProvider(provider);
  tracing.isOn = true;
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const sendAll = async () => {
    await provider.forceFlush();
    await exporter.forceFlush();
    await provider.shutdown();
  };
  return () =>
    withTimeout(
      sendAll(),
      LAST_SPANS_WITHIN_MS,
      () => new Error('the collector did not accept the spans in time'),
    ).catch((error: unknown) =>
      log.warn({ reason: reasonOf(error) }, 'the last spans may be lost: the collector may not have received them'),
    );
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
      // The exporter reports success for failed batches, too, because the SDK would otherwise log the failure again for every batch.
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

/** Returns only the message of an exporter's error, because the error also contains the collector's answer. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** Logs what the SDK reports about its settings. The SDK may repeat a text with every span, so each is logged once, whatever its numbers. */
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
