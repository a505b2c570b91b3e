import { expect } from 'chai';
import { pino } from 'pino';
import { StartFailure } from '../../../core/base/start-failure';
import { openTracing } from '../../../core/traces/open-tracing';
import { filesUnder, importsOf, textOf } from '../../support/sources';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };

describe('the start of tracing', () => {
  let lines: string[];
  const opened = (env: NodeJS.ProcessEnv) => openTracing(env, pino({}, { write: (line) => lines.push(line) }));

  beforeEach(() => {
    lines = [];
  });

  for (const [title, env] of [
    ['no collector is named', {}],
    ['the collector is an empty text', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
    ['the SDK is disabled', { ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }],
    ['the exporter is none', { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }],
  ] as const)
    it(`opens no exporter if ${title}`, () => {
      expect(opened(env)).to.equal(undefined);
      expect(lines).to.deep.equal([]);
    });

  for (const [title, env] of [
    ['a collector is named', ENDPOINT],
    ['a collector of traces is named', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:9/v1/traces' }],
    ['the exporter is otlp, to the usual address', { OTEL_TRACES_EXPORTER: 'otlp' }],
    ['the exporter is an empty text', { ...ENDPOINT, OTEL_TRACES_EXPORTER: '' }],
  ] as const)
    it(`opens an exporter if ${title}`, async () => {
      const tracing = opened(env);
      expect(tracing).to.not.equal(undefined);
      await tracing?.();
    });

  it('logs a warning for an unknown exporter and opens none', () => {
    expect(opened({ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'zipkin' })).to.equal(undefined);
    expect(lines.join()).to.include('OTEL_TRACES_EXPORTER: expected otlp or none');
  });

  for (const env of [
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' },
  ])
    it(`refuses the environment ${JSON.stringify(env)} and says what to do`, () => {
      const [name, value] = Object.entries(env).at(-1) ?? [];
      expect(() => opened({ ...ENDPOINT, ...env }))
        .to.throw(StartFailure, `${name}=${value} is not supported`)
        .with.property('message')
        .that.includes('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json');
    });

  for (const env of [
    { OTEL_EXPORTER_OTLP_PROTOCOL: '' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' },
  ])
    it(`accepts the environment ${JSON.stringify(env)}`, async () => {
      const tracing = opened({ ...ENDPOINT, ...env });
      expect(tracing).to.not.equal(undefined);
      await tracing?.();
    });

  it("alone loads OpenTelemetry's SDK, through a file that no other file imports", () => {
    const ours = ['core', 'policies', 'plugins', 'cli'].flatMap((room) => filesUnder(room)).concat('server.ts');
    const importing = (isMeant: (from: string) => boolean) =>
      ours.filter((path) => path.endsWith('.ts') && importsOf(path, textOf(path)).some(({ from }) => isMeant(from)));
    const isOfSdk = (from: string) => from.startsWith('@opentelemetry/') && from !== '@opentelemetry/api';
    expect(importing(isOfSdk)).to.deep.equal(['core/traces/open-telemetry.ts']);
    expect(importing((from) => from.endsWith('/open-telemetry'))).to.deep.equal(['core/traces/open-tracing.ts']);
    expect(textOf('core/traces/open-tracing.ts')).to.not.match(/^import .*open-telemetry/m);
  });
});
