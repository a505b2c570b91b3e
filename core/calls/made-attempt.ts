import type { AttemptCause, RecordedAttempt } from '../catalog/attempt-fields';
import { type Candidate, entryOf } from '../catalog/catalog';
import { chargeOf } from '../catalog/price';
import type { SseEvent } from '../catalog/upstream';
import type { Pass, Usage } from '../catalog/usage';
import type { TraceHeaders } from '../traces/tracing';
import type { AttemptOutcome } from '../wire/dial-failure';
import type { ExchangeHead } from '../wire/upstream-exchange';

/** One request to an upstream. Its members are written as they become known. */
export interface MadeAttempt {
  readonly candidate: Pick<Candidate, 'upstream' | 'model' | 'adapter'>;
  readonly startedAtMs: number;
  cause: AttemptCause;
  outcome: AttemptOutcome | 'answered';
  status: number | undefined;
  ms: number;
  upstreamRequestId: string | undefined;
  /** Its usage at the upstream; undefined if unknown. */
  usage: Usage | undefined;
  isReported: boolean;
  /** Its cost at the upstream's prices, in 1e-14 USD; undefined if the charge has not counted it. */
  costE14: bigint | undefined;
}

/** Returns an attempt that begins now. It counts as cancelled until it has a result. */
export function beginAttempt(candidate: MadeAttempt['candidate'], cause: AttemptCause): MadeAttempt {
  return {
    candidate,
    startedAtMs: Date.now(),
    cause,
    outcome: 'cancelled',
    status: undefined,
    ms: 0,
    upstreamRequestId: undefined,
    usage: undefined,
    isReported: false,
    costE14: undefined,
  };
}

const MAX_REQUEST_ID_LENGTH = 200;

/** Returns the id that an upstream gave a request. Vendors find the request in their logs by it. */
export function upstreamRequestId(headers: ExchangeHead['headers']): string | undefined {
  const id = headers['request-id'] ?? headers['x-request-id'] ?? headers['x-amzn-requestid'];
  const text = typeof id === 'string' ? id : id?.[0];
  return text?.slice(0, MAX_REQUEST_ID_LENGTH);
}

/** Returns the attempt as it is recorded. `number` is its place if the list does not give it. */
export function recordedAttempt(made: MadeAttempt, number?: number): RecordedAttempt {
  const { startedAtMs, cause, outcome, status, ms } = made;
  const { upstream, model } = made.candidate;
  const usage = isCountable(made.usage) ? made.usage : undefined;
  return {
    startedAtMs,
    number,
    upstream: upstream.name,
    credential: upstream.credential.name,
    model: model.name,
    cause: cause === 'answered' ? undefined : cause,
    outcome: outcome === 'answered' ? undefined : outcome,
    status,
    ms,
    upstreamRequestId: made.upstreamRequestId,
    passes: usage?.passes.map(recordedPass),
    isReported: usage !== undefined && made.isReported,
    costE14: attemptCostE14(made).toString(),
  };
}

/** Returns a pass as it is recorded. It copies each member, because object spreads would cost more than all else here. */
export function recordedPass({ model, tier, speed, geo, counts }: Pass): Record<string, string | number | undefined> {
  const pass: Record<string, string | number | undefined> = { model, tier, speed, geo };
  for (const [meter, count] of counts) pass[meter] = count;
  return pass;
}

/** Returns the cost of an attempt at its upstream's prices, in 1e-14 USD. */
export function attemptCostE14(made: MadeAttempt): bigint {
  if (made.costE14 !== undefined) return made.costE14;
  return isCountable(made.usage) ? costE14Of(made.usage, made.candidate) : 0n;
}

function costE14Of(usage: Usage, candidate: MadeAttempt['candidate']): bigint {
  return chargeOf(usage, (pass) => entryOf(candidate, pass).price).exactE14;
}

/** True if the counts can have a cost. An upstream may report anything, so each count must be a whole number from 0. */
function isCountable(usage: Usage | undefined): usage is Usage {
  if (usage === undefined || usage.passes.length === 0) return false;
  for (const { counts } of usage.passes)
    for (const count of counts.values())
      if (count !== undefined && !(Number.isSafeInteger(count) && count >= 0)) return false;
  return true;
}

/** The trace of a sampled call. */
export interface CallTrace {
  readonly traceId: string;
  /** Begins the span of an attempt; undefined if it is not sampled. `number` is its place from 1, or 0 for a mirror. */
  begin(made: MadeAttempt, number: number): AttemptTrace | undefined;
  /** Ends the span of a failed attempt. The span of an answer ends with its call, and a mirror ends its own. */
  end(made: MadeAttempt): void;
  /** Notes an event of the stream that has a stop reason. */
  noteFinish(event: SseEvent): void;
  /** Notes that the stream has broken off. */
  noteBreak(outcome: AttemptOutcome): void;
}

/** The trace of one attempt at an upstream. */
export interface AttemptTrace {
  /** The headers that make the upstream's own spans part of this one. */
  readonly headers: TraceHeaders | undefined;
  /** Notes a whole unstreamed answer. */
  noteBody(body: unknown): void;
  /** Notes that a stream has its first content. `first` is its first event. */
  noteStream(first: SseEvent | undefined): void;
  end(): void;
}
