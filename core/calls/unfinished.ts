import type { Candidate } from '../catalog/catalog';
import { hasOutput } from '../catalog/protocols';
import type { UpstreamHealth } from '../health/health';
import type { Pauses } from '../wire/pauses';
import type { Call, CallFields, Ending, ModelRequest, StreamAnswer } from './call';

/**
 * This file decides who pays for an incomplete answer; docs/money.md, section "Endings". If an upstream ends the answer early, nothing is
 * charged, unless the client caused that by not reading. If a client leaves a stream, the client pays for what the upstream has probably
 * produced until the gateway cancelled the request.
 */

/** How long the gateway still reads a stream after its client has disconnected, if the stream need not be read to its end. */
const BRIEFLY_MS = 10_000;
/** How long the gateway reads an answer to its end after the client has disconnected. The timeouts of the upstream end most readings earlier. */
const TO_ITS_END_MS = 900_000;

type PaidCall = Pick<Call, 'isCutOff' | 'leftAtMs'> & Pick<CallFields, 'request' | 'reservation' | 'meter'>;

/** Returns for how many milliseconds the gateway still reads an upstream's answer after the client has disconnected. */
export function drainMs(
  { request, reservation }: Pick<PaidCall, 'request' | 'reservation'>,
  { stopsOnCancel }: Candidate['upstream'],
): number {
  const isBrief = request.stream && stopsOnCancel !== false && reservation.onClientAbort === 'settle';
  return isBrief ? BRIEFLY_MS : TO_ITS_END_MS;
}

/**
 * Returns how many milliseconds an upstream may take to begin its answer to an unstreamed call, because a long answer takes long to
 * generate. Returns undefined for a stream. Also returns undefined if even the longest allowed answer fits into `timeouts.headers`.
 */
export function thinkingMs(request: ModelRequest, candidate: Candidate, health: UpstreamHealth): number | undefined {
  const { headersMs, answerMs } = candidate.upstream.timeouts;
  const ms = (outputLimit(request, candidate) * 1_000) / health.gauge(candidate).tokensPerSecond;
  if (request.stream || !hasOutput(request.protocol) || ms <= headersMs) return undefined;
  return Math.max(headersMs, Math.min(ms, answerMs));
}

/** What is known about a stream that ends incomplete. */
interface UnfinishedStream extends Pick<StreamAnswer, 'candidate' | 'chunks' | 'headAtMs'> {
  readonly hasContent: boolean;
  /** Whether the gateway ended the stream, because its time limit for reading after the client's disconnect had passed. */
  readonly isCancelled: boolean;
  /** How long the gateway waited for the client to read; undefined if it never waited. */
  readonly clientPauses: Pauses | undefined;
}

/** Returns how an incomplete stream is charged. */
export function endingOfStream(call: PaidCall, stream: UnfinishedStream, health: UpstreamHealth): Ending {
  const { candidate, hasContent, isCancelled, headAtMs, chunks, clientPauses } = stream;
  const { isCutOff, leftAtMs } = call;
  if (leftAtMs !== undefined && !isCutOff) {
    if (!hasContent && !isCancelled) return RELEASED;
    const ms = performance.now() - headAtMs - (chunks.pauses?.totalMs ?? 0);
    return partial(call, candidate, producedIn(ms, call.request, candidate, health));
  }
  // If a stopping process cut the stream off, the client caused the end if the gateway had long waited for the client to read. For any other early
  // end, the client is the cause only if its slow reading made the gateway pause reading from the upstream for long.
  const isByClient = (isCutOff ? clientPauses : chunks.pauses)?.wasLong === true;
  return isByClient && hasContent ? partial(call, candidate) : RELEASED;
}

/** Returns how a call is charged if the upstream accepted it but did not begin to answer. */
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

/** Returns the most output tokens that one choice can have. */
function outputLimit({ maxOutputTokens }: Pick<ModelRequest, 'maxOutputTokens'>, { model }: Candidate): number {
  return Math.min(maxOutputTokens ?? model.maxOutput, model.maxOutput);
}

const RELEASED: Ending = { billing: 'released' };

function partial({ meter }: PaidCall, candidate: Candidate, atLeastTokens = 0): Ending {
  return { ...meter.readPartial(atLeastTokens), candidate, billing: 'partial' };
}

/** Returns how many output tokens the model has probably produced in `ms` milliseconds, including those that it does not show. */
function producedIn(ms: number, request: ModelRequest, candidate: Candidate, health: UpstreamHealth): number {
  const { tokensPerSecond } = health.gauge(candidate);
  return Math.min(Math.ceil((tokensPerSecond * ms) / 1_000), outputLimit(request, candidate) * request.choices);
}
