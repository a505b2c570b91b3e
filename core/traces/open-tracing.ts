import type { Logger } from 'pino';
import type { Stop } from '../base/resources';
import { StartFailure } from '../base/start-failure';

/** The environment variables that name the protocol for sending spans to the collector. The first one that is set counts. */
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/**
 * Starts the tracing that the standard `OTEL_*` variables describe, and returns a function that ends it. If the variables name no
 * collector, it loads nothing and returns undefined.
 * @throws StartFailure if the variables name another protocol than http/json
 */
export function openTracing(env: NodeJS.ProcessEnv, log: Logger): Stop | undefined {
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
  const name = PROTOCOLS.find((each) => isSet(env[each]));
  if (name !== undefined && env[name] !== 'http/json')
    throw new StartFailure(
      `${name}=${env[name]} is not supported: traces are sent as http/json, which collectors accept at port 4318. Set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json, or OTEL_TRACES_EXPORTER=none for no traces.`,
    );
  return true;
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}
