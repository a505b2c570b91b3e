import type { AttemptCause, RecordedAttempt } from '../catalog/attempt-fields';
import { type Candidate, entryOf } from '../catalog/catalog';
import { chargeOf } from '../catalog/price';
import type { Pass, Usage } from '../catalog/usage';
import type { AttemptOutcome } from '../wire/dial-failure';
import type { ExchangeHead } from '../wire/exchange';

/** One request to an upstream, written as it becomes known. */
export interface MadeAttempt {
  readonly candidate: Pick<Candidate, 'upstream' | 'model'>;
  readonly startedAtMs: number;
  cause: AttemptCause;
  outcome: AttemptOutcome | 'answered';
  status: number | undefined;
  ms: number;
  upstreamRequestId: string | undefined;
  /** What it used at the upstream; undefined where nothing is known of it. */
  usage: Usage | undefined;
  isReported: boolean;
}

/** An attempt that begins now. It counts as cancelled until it has come to something. */
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
  };
}

const LONGEST_REQUEST_ID = 200;

/** The id that an upstream gave a request; vendors find it in their logs by that. */
export function upstreamRequestId(headers: ExchangeHead['headers']): string | undefined {
  const id = headers['request-id'] ?? headers['x-request-id'];
  const text = typeof id === 'string' ? id : id?.[0];
  return text?.slice(0, LONGEST_REQUEST_ID);
}

/** The attempt as it is recorded; `number` is its place where the list does not say it. */
export function recordedAttempt(made: MadeAttempt, number?: number): RecordedAttempt {
  const { candidate, startedAtMs, cause, outcome, status, ms } = made;
  const { upstream, model } = candidate;
  const usage = isCountable(made.usage) ? made.usage : undefined;
  return {
    startedAt: new Date(startedAtMs).toISOString(),
    number,
    upstream: upstream.name,
    credential: upstream.credentialName ?? upstream.name,
    model: model.name,
    cause,
    outcome,
    status,
    ms,
    upstreamRequestId: made.upstreamRequestId,
    passes: usage?.passes.map(recordedPass),
    isReported: usage !== undefined && made.isReported,
    costE14: usage === undefined ? '0' : costE14Of(usage, candidate),
  };
}

/** Written out: spreads of objects cost more than all else here. */
function recordedPass({ model, tier, speed, geo, counts }: Pass): Record<string, string | number | undefined> {
  const pass: Record<string, string | number | undefined> = { model, tier, speed, geo };
  for (const [meter, count] of counts) pass[meter] = count;
  return pass;
}

function costE14Of(usage: Usage, candidate: MadeAttempt['candidate']): string {
  return chargeOf([{ usage, priceOf: (pass) => entryOf(candidate, pass).price }]).exactE14.toString();
}

/** What an upstream says of itself may be anything; only integers have a cost. */
function isCountable(usage: Usage | undefined): usage is Usage {
  if (usage === undefined || usage.passes.length === 0) return false;
  return usage.passes.every(({ counts }) =>
    [...counts.values()].every((each = 0) => Number.isSafeInteger(each) && each >= 0),
  );
}
