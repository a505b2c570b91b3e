import type { BrokenStream, GoOn, ModelRequest, StreamAnswer } from '../../core/calls/call';
import { type Candidate, canGoOn } from '../../core/catalog/catalog';
import type { Attempts } from './attempts';
import type { Failure } from './decide';

/**
 * Returns what continues an answer that breaks. It tries the candidates that were not tried yet and can continue, then the one
 * that broke. It drops a candidate that refuses the beginning.
 */
export function goOnWith(attempts: Attempts, request: ModelRequest, begun: Candidate): GoOn {
  let current = begun;
  return async (broken) => {
    attempts.keepOnly(canGoOn);
    let decision = attempts.broke(current, failureOf(broken));
    while (decision.do === 'next' || decision.do === 'retry') {
      const candidate = await attempts.goOn(decision, current);
      const continuing = canGoOn(candidate) ? continuingRequest(request, candidate, broken) : undefined;
      if (continuing === undefined) return undefined;
      current = candidate;
      const attempted = await attempts.ask(candidate, continuing);
      if ('answer' in attempted) {
        if (attempted.answer.kind === 'stream') return attempted.answer satisfies StreamAnswer;
        if (attempted.answer.kind === 'abandoned') return undefined;
        if (attempted.answer.kind === 'relay') attempted.answer.chunks.cancel();
        decision = attempts.broke(candidate, NO_STREAM);
        continue;
      }
      attempted.relay?.chunks.cancel();
      decision = attempts.decide({ ...attempted.failure, verdict: 'next' }, candidate);
    }
    return undefined;
  };
}

/** The failure of an upstream that sends a redirect or an unstreamed answer where the gateway needs a stream. */
const NO_STREAM: Failure = { outcome: 'status', status: 400, verdict: 'next', retryAfterMs: undefined };

function failureOf({ outcome }: BrokenStream): Failure {
  return { outcome, status: 200, verdict: 'next', retryAfterMs: undefined };
}

/** Returns the call that continues an answer; undefined if there is no text to continue or nothing is left of the client's limit. */
function continuingRequest(
  request: ModelRequest,
  { model }: Candidate,
  { said, outputTokens }: BrokenStream,
): ModelRequest | undefined {
  const text = said.trimEnd();
  const { maxOutputTokens } = request;
  const left = maxOutputTokens === undefined ? undefined : Math.min(maxOutputTokens, model.maxOutput) - outputTokens;
  if (text === '' || (left !== undefined && left < 1)) return undefined;
  return { ...request, beginning: { text, outputTokensLeft: left } };
}
