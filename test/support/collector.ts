import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { until } from './until';

/** A span as the collector receives it, with its attributes by name. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client' | undefined;
  readonly hasFailed: boolean;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
}

/** Takes spans over OTLP/HTTP in JSON, as a collector does. */
export class TestCollector {
  readonly spans: CollectedSpan[] = [];
  /** Every body as it arrived, and the headers of the last request. */
  readonly bodies: Buffer[] = [];
  headers: IncomingHttpHeaders = {};
  /** The status that it answers; `silent` means no answer. */
  answers: number | 'silent' = 200;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(port = 0): Promise<TestCollector> {
    const server = createServer();
    const collector = new TestCollector(server);
    server.on('request', async (request, response) => {
      const body = await buffer(request);
      collector.bodies.push(body);
      collector.headers = request.headers;
      if (collector.answers === 'silent') return;
      if (collector.answers === 200 && request.url === '/v1/traces') collector.spans.push(...spansIn(body));
      response.writeHead(request.url === '/v1/traces' ? collector.answers : 404, {
        'content-type': 'application/json',
      });
      response.end('{}');
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Returns all spans of a trace, once this many have arrived. */
  trace(count: number, isOne: (span: CollectedSpan) => boolean): Promise<readonly CollectedSpan[]> {
    return until(`a trace of ${count} spans`, () => {
      const traceId = this.spans.find(isOne)?.traceId;
      const found = this.spans.filter((span) => span.traceId === traceId);
      return found.length >= count ? found : undefined;
    });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

const KINDS = { 1: 'internal', 2: 'server', 3: 'client' } as const;

// biome-ignore lint/suspicious/noExplicitAny: OTLP as it came
type Sent = any;

function spansIn(body: Buffer): CollectedSpan[] {
  const { resourceSpans } = JSON.parse(body.toString('utf8')) as Sent;
  return resourceSpans.flatMap(({ resource, scopeSpans }: Sent) =>
    scopeSpans.flatMap(({ spans }: Sent) =>
      spans.map(
        (span: Sent): CollectedSpan => ({
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId || undefined,
          name: span.name,
          kind: KINDS[span.kind as keyof typeof KINDS],
          hasFailed: span.status?.code === 2,
          startMs: Number(BigInt(span.startTimeUnixNano) / 1_000n) / 1_000,
          endMs: Number(BigInt(span.endTimeUnixNano) / 1_000n) / 1_000,
          attributes: attributesIn(span.attributes),
          resource: attributesIn(resource.attributes),
        }),
      ),
    ),
  );
}

function attributesIn(list: Sent): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }: Sent) => [key, readValue(value)]));
}

function readValue({ stringValue, boolValue, intValue, doubleValue, arrayValue }: Sent): unknown {
  if (arrayValue !== undefined) return arrayValue.values.map(readValue);
  return stringValue ?? boolValue ?? doubleValue ?? Number(intValue);
}
