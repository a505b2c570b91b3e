import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Attributes, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api';
import { append } from '../base/collections';
import { asArray, asObject, type JsonObject } from '../base/json-values';
import { parseJson } from '../base/parse-json';
import type { SseEvent } from '../catalog/upstream';
import {
  CACHE_READ_METERS,
  CACHE_WRITE_METERS,
  outputTokens,
  tokensOf,
  totalInputTokens,
  type Usage,
} from '../catalog/usage';
import { CLIENT_LEFT_STATUS } from '../http/client-left';
import { contextIn, endSpan, headersOf, type TraceHeaders, tracer, tracing } from '../traces/tracing';
import type { AttemptOutcome } from '../wire/dial-failure';
import type { Call } from './call';
import { type AttemptTrace, attemptCostE14, type CallTrace, type MadeAttempt } from './made-attempt';

/** Starts the trace of a call if it is sampled, and ends it with the call. */
export function traceCall(call: Call, request: IncomingMessage, response: ServerResponse): void {
  if (!tracing.isOn) return;
  const zeroMs = Date.now() - performance.now();
  const options = { kind: SpanKind.SERVER, startTime: zeroMs + performance.now() };
  const span = tracer.startSpan(`${request.method} ${call.path}`, options, contextIn(request.headers));
  call.traceHeaders = headersOf(span);
  if (!span.isRecording()) return;
  const sampled = new SampledCall(span, call, zeroMs);
  call.trace = sampled;
  call.onEnd(() => sampled.endCall(request.method, response.statusCode));
}

/** The span of a sampled call and the spans of its attempts. Spans have names, numbers and codes, but no content. */
class SampledCall implements CallTrace {
  /** The spans of the attempts that have not ended. */
  readonly #attempts = new Map<MadeAttempt, SampledAttempt>();

  constructor(
    private readonly span: Span,
    private readonly call: Call,
    /** The wall-clock time at which `performance.now()` was 0. All spans of a call use it, so that no child span ends after its parent. */
    private readonly zeroMs: number,
  ) {}

  get traceId(): string {
    return this.span.spanContext().traceId;
  }

  begin(made: MadeAttempt, number: number): AttemptTrace | undefined {
    const { upstream, model } = made.candidate;
    const { hostname, port, protocol } = upstream.url;
    const operation = operationOf(this.call);
    const options = { kind: SpanKind.CLIENT, startTime: this.zeroMs + performance.now() };
    const span = tracer.startSpan(`${operation} ${model.name}`, options, trace.setSpan(ROOT_CONTEXT, this.span));
    if (!span.isRecording()) return undefined;
    span.setAttributes({
      'gen_ai.operation.name': operation,
      ...providerOf(made),
      'gen_ai.request.model': model.name,
      'http.request.method': 'POST',
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
      'tollgate.upstream': upstream.name,
      'tollgate.credential': upstream.credential.name,
      'tollgate.attempt': number,
    });
    const attempt = new SampledAttempt(span, made, this.zeroMs);
    if (number > 0) this.#attempts.set(made, attempt);
    return attempt;
  }

  end(made: MadeAttempt): void {
    this.#attempts.get(made)?.end();
    this.#attempts.delete(made);
  }

  noteFinish(event: SseEvent): void {
    this.#last?.noteFinish(event);
  }

  noteBreak(outcome: AttemptOutcome): void {
    this.#last?.noteBreak(outcome);
  }

  get #last(): SampledAttempt | undefined {
    return [...this.#attempts.values()].at(-1);
  }

  endCall(method: string | undefined, sentStatus: number): void {
    const { call } = this;
    const { facts, request, key } = call;
    const said = this.#last?.attributes;
    for (const attempt of this.#attempts.values()) attempt.end();
    const status = facts.status || sentStatus;
    const hasLeft = call.leftAtMs !== undefined;
    const made = facts.made.at(-1);
    endSpan(
      this.span,
      {
        'http.request.method': method,
        'http.route': call.path,
        'url.path': call.path,
        'http.response.status_code': status,
        'network.protocol.name': call.upstreamSocket === undefined ? 'http' : 'websocket',
        'error.type': facts.errorCode,
        'gen_ai.operation.name': operationOf(call),
        ...(made && providerOf(made)),
        // Omits a model name that the catalog does not know, because a client may send any text.
        'gen_ai.request.model': call.candidates && request?.modelRequested,
        ...said,
        ...countsOf(facts.charged),
        'tollgate.request_id': call.id,
        'tollgate.account_id': key?.accountId,
        'tollgate.key_id': key?.keyId,
        'tollgate.strategy': facts.strategy,
        'tollgate.upstream': facts.upstream,
        'tollgate.attempts': facts.attempts,
        'tollgate.fallback': facts.fallback,
        'tollgate.stream': request?.stream,
        'tollgate.first_token_ms': facts.firstTokenMs,
        'tollgate.client_left': hasLeft,
        'tollgate.cost_usd': Number(facts.costE8) / 1e8,
      },
      !hasLeft && (status >= 500 || (status < 400 && facts.errorCode !== undefined)),
      this.zeroMs + performance.now(),
    );
  }
}

/** The span of one attempt at an upstream. */
class SampledAttempt implements AttemptTrace {
  #model: string | undefined;
  readonly #reasons: string[] = [];
  #firstTokenMs: number | undefined;
  /** When an unstreamed answer was complete. It is undefined for a stream, because the span of a stream lasts until the call has ended. */
  #wholeAtMs: number | undefined;
  #brokenBy: AttemptOutcome | undefined;

  constructor(
    private readonly span: Span,
    private readonly made: MadeAttempt,
    private readonly zeroMs: number,
  ) {}

  get headers(): TraceHeaders | undefined {
    return headersOf(this.span);
  }

  noteBody(body: unknown): void {
    this.#wholeAtMs = performance.now();
    const answer = asObject(body) ?? {};
    this.#model = modelIn(answer);
    append(this.#reasons, reasonsIn(answer));
  }

  noteStream(first: SseEvent | undefined): void {
    this.#firstTokenMs = this.made.ms;
    this.#model = modelIn(dataOf(first));
  }

  noteFinish(event: SseEvent): void {
    append(this.#reasons, reasonsIn(dataOf(event)));
  }

  noteBreak(outcome: AttemptOutcome): void {
    this.#brokenBy = outcome;
  }

  get attributes(): Attributes {
    return {
      'gen_ai.response.model': this.#model,
      'gen_ai.response.finish_reasons': this.#reasons.length === 0 ? undefined : this.#reasons,
    };
  }

  end(): void {
    if (!this.span.isRecording()) return;
    const { status, usage, upstreamRequestId } = this.made;
    const outcome = this.#brokenBy ?? this.made.outcome;
    // An attempt that the gateway cancels, because the client disconnected or the process stops, does not count as a failure of the upstream.
    const hasFailed = outcome !== 'answered' && outcome !== 'cancelled';
    endSpan(
      this.span,
      {
        ...this.attributes,
        ...countsOf(usage),
        'http.response.status_code': status === CLIENT_LEFT_STATUS ? undefined : status,
        'error.type': hasFailed ? outcome : undefined,
        'tollgate.outcome': outcome,
        'tollgate.first_token_ms': this.#firstTokenMs,
        'tollgate.upstream_cost_usd': Number(attemptCostE14(this.made)) / 1e14,
        'tollgate.upstream_request_id': upstreamRequestId,
      },
      hasFailed,
      this.zeroMs + (this.#wholeAtMs ?? performance.now()),
    );
  }
}

function countsOf(usage: Usage | undefined): Attributes {
  if (usage === undefined) return {};
  return {
    'gen_ai.usage.input_tokens': totalInputTokens(usage),
    'gen_ai.usage.output_tokens': outputTokens(usage),
    'gen_ai.usage.cache_read.input_tokens': tokensOf(usage, CACHE_READ_METERS),
    'gen_ai.usage.cache_creation.input_tokens': tokensOf(usage, CACHE_WRITE_METERS),
  };
}

function operationOf({ protocol }: Call): string {
  return protocol === 'embeddings' ? 'embeddings' : 'chat';
}

/** The provider names of the OpenTelemetry convention, by the adapter of the upstream. */
const PROVIDERS: Readonly<Record<string, string>> = {
  chat: 'openai',
  responses: 'openai',
  embeddings: 'openai',
  messages: 'anthropic',
  bedrock: 'aws.bedrock',
  'bedrock-converse': 'aws.bedrock',
  vertex: 'gcp.vertex_ai',
  'vertex-gemini': 'gcp.vertex_ai',
  gemini: 'gcp.gemini',
};

/** Returns the attributes that name the provider. There are two, because older tools read the second. */
function providerOf({ candidate: { adapter } }: MadeAttempt): Attributes {
  const provider = PROVIDERS[adapter.name] ?? adapter.name;
  return { 'gen_ai.provider.name': provider, 'gen_ai.system': provider };
}

function dataOf(event: SseEvent | undefined): JsonObject {
  return asObject(parseJson(event?.data ?? '')) ?? {};
}

/** Returns the model name in an answer: in a body or chunk of Chat, `message_start` of Messages, or an event of Responses. */
function modelIn(answer: JsonObject): string | undefined {
  const places = [answer, asObject(answer['message']), asObject(answer['response'])];
  return places.map((place) => place?.['model']).find(isName);
}

/** Returns the stop reasons in an answer: of the choices of Chat, of a body or `message_delta` of Messages, or the status of Responses. */
function reasonsIn(answer: JsonObject): readonly string[] {
  const response = asObject(answer['response']) ?? answer;
  return [
    ...asArray(answer['choices']).map((choice) => asObject(choice)?.['finish_reason']),
    answer['stop_reason'] ?? asObject(answer['delta'])?.['stop_reason'],
    asObject(response['incomplete_details'])?.['reason'] ?? ('output' in response ? response['status'] : undefined),
  ].filter(isName);
}

/** Returns whether a value looks like a word or a name. Spans keep nothing else, because an upstream may send any text. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[\w.:/@-]{1,100}$/.test(value);
}
