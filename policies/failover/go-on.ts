import type { BrokenStream, GoOn, ModelRequest, StreamAnswer } from '../../core/calls/call';
import { type Candidate, canGoOn } from '../../core/catalog/catalog';
import type { Attempts } from './attempts';
import type { Failure } from './decide';

/**
 * Finds somebody to go on with an answer that breaks off: the candidates not asked yet that say they can, then the one that
 * broke off, if it can. Who refuses a beginning after all is left out.
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

/** A redirect, or an answer in one piece, though a stream was asked for. */
const NO_STREAM: Failure = { outcome: 'status', status: 400, verdict: 'next', retryAfterMs: undefined };

function failureOf({ outcome }: BrokenStream): Failure {
  return { outcome, status: 200, verdict: 'next', retryAfterMs: undefined };
}

/** undefined when there is nothing to go on from, or nothing left of the caller's limit. */
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
