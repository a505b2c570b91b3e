import type { Candidate } from '../catalog/catalog';
import { hasOutput } from '../catalog/protocols';
import type { UpstreamHealth } from '../health/health';
import type { Pauses } from '../wire/pauses';
import type { Call, CallFields, Ending, ModelRequest, StreamAnswer } from './call';

/**
 * Who pays for an answer that is not whole; docs/money.md, section "Endings". An upstream that breaks off is not paid, unless its
 * client caused it by not reading. A client that leaves a stream pays for what the upstream has probably produced until the gateway
 * cancelled it.
 */

/** A time that is long enough for the end of most answers. */
const BRIEFLY_MS = 10_000;
/** A time for reading an answer to its end. The upstream's own timeouts end most readings earlier. */
const TO_ITS_END_MS = 900_000;

type PaidCall = Pick<Call, 'isCutOff' | 'leftAtMs'> & Pick<CallFields, 'request' | 'reservation' | 'meter'>;

/** Returns for how many milliseconds the gateway reads an upstream that took a request after the client has left. */
export function drainMs(
  { request, reservation }: Pick<PaidCall, 'request' | 'reservation'>,
  { stopsOnCancel }: Candidate['upstream'],
): number {
  const isBrief = request.stream && stopsOnCancel !== false && reservation.onClientAbort === 'settle';
  return isBrief ? BRIEFLY_MS : TO_ITS_END_MS;
}

/**
 * Returns for how many milliseconds an upstream may be silent before it answers an unstreamed call, if the longest answer that the
 * call allows explains more than `timeouts.headers`; undefined otherwise. The upstream probably works during this time.
 */
export function thinkingMs(request: ModelRequest, candidate: Candidate, health: UpstreamHealth): number | undefined {
  const { headersMs, answerMs } = candidate.upstream.timeouts;
  const ms = (outputLimit(request, candidate) * 1_000) / health.gauge(candidate).tokensPerSecond;
  if (request.stream || !hasOutput(request.protocol) || ms <= headersMs) return undefined;
  return Math.max(headersMs, Math.min(ms, answerMs));
}

/** What is known of an unfinished stream when it ends. */
interface UnfinishedStream extends Pick<StreamAnswer, 'candidate' | 'chunks' | 'headAtMs'> {
  readonly hasContent: boolean;
  /** Whether the gateway ended it, because the time of reading for an absent client was over. */
  readonly isCancelled: boolean;
  /** The waits for the client; undefined if there were none. */
  readonly clientPauses: Pauses | undefined;
}

/** Returns what an unfinished stream costs. */
export function endingOfStream(call: PaidCall, stream: UnfinishedStream, health: UpstreamHealth): Ending {
  const { candidate, hasContent, isCancelled, headAtMs, chunks, clientPauses } = stream;
  const { isCutOff, leftAtMs } = call;
  if (leftAtMs !== undefined && !isCutOff) {
    if (!hasContent && !isCancelled) return RELEASED;
    const ms = performance.now() - headAtMs - (chunks.pauses?.totalMs ?? 0);
    return partial(call, candidate, producedIn(ms, call.request, candidate, health));
  }
  // A stop ends what still waits for the client. An upstream breaks off because of its client only if reading from it paused.
  const isByClient = (isCutOff ? clientPauses : chunks.pauses)?.wasLong === true;
  return isByClient && hasContent ? partial(call, candidate) : RELEASED;
}

/** Returns what a call costs whose upstream took it and did not begin to answer. */
export function endingOfUnanswered(
  call: PaidCall,
  candidate: Candidate,
  sentAtMs: number,
  health: UpstreamHealth,
): Ending {
  const { request } = call;
  const tokens = request.stream ? producedIn(performance.now() - sentAtMs, request, candidate, health) : 0;
  return partial(call, candidate, tokens);
}

/** Returns the most output tokens of one choice. */
function outputLimit({ maxOutputTokens }: Pick<ModelRequest, 'maxOutputTokens'>, { model }: Candidate): number {
  return Math.min(maxOutputTokens ?? model.maxOutput, model.maxOutput);
}

const RELEASED: Ending = { billing: 'released' };

function partial({ meter }: PaidCall, candidate: Candidate, atLeastTokens = 0): Ending {
  return { ...meter.readPartial(atLeastTokens), candidate, billing: 'partial' };
}

/** Returns how many output tokens the model has probably produced in this time, shown or not. */
function producedIn(ms: number, request: ModelRequest, candidate: Candidate, health: UpstreamHealth): number {
  const { tokensPerSecond } = health.gauge(candidate);
  return Math.min(Math.ceil((tokensPerSecond * ms) / 1_000), outputLimit(request, candidate) * request.choices);
}
