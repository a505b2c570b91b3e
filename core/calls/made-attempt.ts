import type { AttemptCause, RecordedAttempt } from '../catalog/attempt-fields';
import { type Candidate, entryOf } from '../catalog/catalog';
import { recordedDeclaration } from '../catalog/demands';
import { chargeOf, type Price } from '../catalog/price';
import type { SseEvent } from '../catalog/upstream';
import { type Pass, reportedRegion, type Usage } from '../catalog/usage';
import type { TraceHeaders } from '../traces/tracing';
import type { AttemptOutcome } from '../wire/dial-failure';
import type { ExchangeHead } from '../wire/upstream-exchange';

/** One request to an upstream. The gateway sets the members of this object as their values become known. */
export interface MadeAttempt {
  readonly candidate: Pick<Candidate, 'upstream' | 'model' | 'adapter'>;
  /** What the caller pays for the model there. */
  readonly price: Price;
  readonly startedAtMs: number;
  cause: AttemptCause;
  outcome: AttemptOutcome | 'answered';
  status: number | undefined;
  ms: number;
  upstreamRequestId: string | undefined;
  /** The usage that the upstream counts for the attempt; undefined if unknown. */
  usage: Usage | undefined;
  isReported: boolean;
  /** The cost at the upstream's prices, in 1e-14 USD; undefined if no charge has computed it. */
  costE14: bigint | undefined;
}

/** Returns an attempt that begins now. Its outcome is `cancelled` until the gateway sets a different outcome. */
export function beginAttempt(
  candidate: MadeAttempt['candidate'],
  cause: AttemptCause,
  price: Price = candidate.model.price,
): MadeAttempt {
  return {
    candidate,
    price,
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

/** Returns the upstream's id of a request, with which the vendor finds the request in its logs. */
export function upstreamRequestId(headers: ExchangeHead['headers']): string | undefined {
  const id = headers['request-id'] ?? headers['x-request-id'] ?? headers['x-amzn-requestid'];
  const text = typeof id === 'string' ? id : id?.[0];
  return text?.slice(0, MAX_REQUEST_ID_LENGTH);
}

/** Returns the attempt in the form of a row of upstream_attempts. `number` is its number within the call; undefined stands for its position in the list. */
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
    region: made.usage && reportedRegion(made.usage),
    declared: recordedDeclaration(model, made.price),
    passes: usage?.passes.map(recordedPass),
    isReported: usage !== undefined && made.isReported,
    costE14: attemptCostE14(made).toString(),
  };
}

/** Returns a pass (one run of a model) in recorded form. It copies each member, because object spreads would cost more than the rest of the record. */
export function recordedPass({ model, tier, speed, geo, counts }: Pass): Record<string, string | number | undefined> {
  const pass: Record<string, string | number | undefined> = { model, tier, speed, geo };
  for (const [meter, count] of counts) pass[meter] = count;
  return pass;
}

/** Returns the cost of an attempt at its upstream's prices, in 1e-14 USD; 0 if its usage is unknown or invalid. */
export function attemptCostE14(made: MadeAttempt): bigint {
  if (made.costE14 !== undefined) return made.costE14;
  return isCountable(made.usage) ? costE14Of(made.usage, made.candidate) : 0n;
}

function costE14Of(usage: Usage, candidate: MadeAttempt['candidate']): bigint {
  return chargeOf(usage, (pass) => entryOf(candidate, pass).price).exactE14;
}

/** Returns whether a cost can be computed. An upstream may report anything, so each count must be a whole number ≥ 0. */
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
  /** Begins the span of an attempt; returns undefined if the attempt is not sampled. `number` is its number within the call, from 1; 0 for a mirror. */
  begin(made: MadeAttempt, number: number): AttemptTrace | undefined;
  /** Ends the span of a failed attempt. The span of an answered attempt ends with its call, and the mirror ends its own span. */
  end(made: MadeAttempt): void;
  /** Adds the stop reason in an event of the stream to the trace. */
  noteFinish(event: SseEvent): void;
  /** Records in the trace that the stream ended before it was complete. */
  noteBreak(outcome: AttemptOutcome): void;
}

/** The trace of one attempt at an upstream. */
export interface AttemptTrace {
  /** The headers with which the upstream's own spans become children of this span. */
  readonly headers: TraceHeaders | undefined;
  /** Records a complete unstreamed answer in the span. */
  noteBody(body: unknown): void;
  /** Records that the first content of a stream has arrived. `first` is the first event of the stream. */
  noteStream(first: SseEvent | undefined): void;
  end(): void;
}
