import type { Logger } from 'pino';
import type { Tracing } from './tracing';

/** Starts the tracing that the standard `OTEL_*` variables describe. Returns undefined and loads nothing if they name no collector. */
export function openTracing(env: NodeJS.ProcessEnv, log: Logger): Tracing | undefined {
  if (!isWanted(env, log)) return undefined;
  const { startTracing } = require('./open-telemetry') as typeof import('./open-telemetry');
  return startTracing(log);
}

function isWanted(env: NodeJS.ProcessEnv, log: Logger): boolean {
  const { OTEL_TRACES_EXPORTER: exporter, OTEL_SDK_DISABLED: disabled } = env;
  if (disabled?.trim().toLowerCase() === 'true') return false;
  const isNamed = [env['OTEL_EXPORTER_OTLP_ENDPOINT'], env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']].some(isSet);
  if (!isSet(exporter) ? !isNamed : exporter === 'none') return false;
  if (isSet(exporter) && exporter !== 'otlp') {
    log.warn({ exporter }, 'OTEL_TRACES_EXPORTER: expected otlp or none; tracing is off');
    return false;
  }
  const protocol = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] || env['OTEL_EXPORTER_OTLP_PROTOCOL'];
  if (protocol === 'grpc')
    log.warn(
      'OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported: spans are sent over HTTP, which collectors accept at port 4318',
    );
  return true;
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}
