import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'pino';
import { annotateCost } from '../../core/annotate-cost';
import type { Answer } from '../../core/call';
import { classifyDialFailure } from '../../core/egress';
import { errorEnvelope, fail, type GatewayError } from '../../core/errors';
import type { NotedEvent } from '../../core/event-reader';
import type { Protocol } from '../../core/upstream';
import { type AnsweredCall, answerHeaders, noteAnswer, stopWhenClientLeaves } from './headers';

interface StreamSettings {
  readonly annotateStreamCost: boolean;
  readonly log: Logger;
}

/**
 * A stream, event by event as it comes, at the caller's pace. It ends as the upstream ended it, or with the protocol's
 * own error event: never as if it were complete when it is not.
 */
export async function sendStream(
  call: AnsweredCall,
  answer: Answer & { kind: 'stream' },
  response: ServerResponse,
  settings: StreamSettings,
): Promise<void> {
  noteAnswer(call, answer);
  response.writeHead(answer.status, [...answerHeaders(call, answer), 'cache-control', 'no-cache']);
  // A preamble that was held long enough without an event: the caller sees at least the status now.
  if (answer.head.length === 0) response.flushHeaders();
  const relay = new StreamRelay(call, answer, settings);
  stopWhenClientLeaves(call, answer.chunks);
  try {
    await pipeline(relay.bytes(), response, { signal: call.left });
  } catch {
    // The client has left: what it was given is charged, and the upstream is told to stop.
    response.destroy();
  }
  await relay.settleAsItStands();
}

class StreamRelay {
  #contentRelayed = false;
  /** As far as it was relayed: the reader may be ahead. */
  #isWhole = false;
  #brokenBy: string | undefined;
  #upstreamToldIt = false;
  #errorCode: 'ALL_PROVIDERS_FAILED' | 'UPSTREAM_TIMEOUT' = 'ALL_PROVIDERS_FAILED';

  constructor(
    private readonly call: AnsweredCall,
    private readonly answer: Answer & { kind: 'stream' },
    private readonly settings: StreamSettings,
  ) {}

  async *bytes(): AsyncGenerator<Buffer> {
    const { head, events, chunks } = this.answer;
    try {
      yield* this.#relayed(head);
      while (this.#brokenBy === undefined) {
        const chunk = await chunks.take();
        if (chunk === undefined) break;
        yield* this.#relayed(events.read(chunk));
      }
    } catch (error) {
      this.#broken(error instanceof Error ? error.message : String(error), classifyDialFailure(error) === 'timeout');
    } finally {
      chunks.cancel();
    }
    if (this.call.hasLeft) return;
    if (!this.#isWhole) {
      this.#broken('the stream ended early');
      await this.settleAsItStands();
      if (!this.#upstreamToldIt) yield this.#errorEvent();
      return;
    }
    await this.settleAsItStands();
    const rest = this.#brokenBy === undefined ? events.rest() : undefined;
    if (rest !== undefined) yield rest;
  }

  /** The events' bytes in as few pieces as can be; money is settled before the event that tells of it. */
  async *#relayed(events: readonly NotedEvent[]): AsyncGenerator<Buffer> {
    const pieces: Buffer[] = [];
    for (const { raw, note, isWhole } of events) {
      if (note.malformed === true) {
        this.#broken('an event could not be understood');
        break;
      }
      this.call.meter.note(note);
      this.#isWhole = isWhole;
      if (note.content === true) this.#contentRelayed = true;
      if (note.error !== undefined) {
        this.#broken('the upstream reported an error');
        this.#upstreamToldIt = true;
      }
      const settles = note.finalUsage === true && isWhole;
      if (settles && pieces.length > 0) yield Buffer.concat(pieces.splice(0));
      pieces.push(settles ? await this.#settled(raw) : raw);
    }
    if (pieces.length > 0) yield pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  }

  async #settled(raw: Buffer): Promise<Buffer> {
    const { call, answer } = this;
    const { chargedE8 } = await call.reservation.settle({ ...call.meter.read(), candidate: answer.candidate });
    return this.settings.annotateStreamCost ? annotateCost(raw, chargedE8) : raw;
  }

  /** Charges by how far the stream has come; the first settlement stands. */
  async settleAsItStands(): Promise<void> {
    const { call, answer } = this;
    const { candidate } = answer;
    if (this.#isWhole) await call.reservation.settle({ ...call.meter.read(), candidate });
    else if (call.hasLeft && this.#contentRelayed)
      await call.reservation.settle({ billing: 'partial', candidate, usage: call.meter.readPartial() });
    else await call.reservation.settle({ billing: 'released' });
  }

  /** The first reason counts. */
  #broken(why: string, isTimeout = false): void {
    if (this.#brokenBy !== undefined || this.call.hasLeft) return;
    this.#brokenBy = why;
    this.#errorCode = isTimeout ? 'UPSTREAM_TIMEOUT' : 'ALL_PROVIDERS_FAILED';
    this.call.facts.errorCode = this.#errorCode;
    this.settings.log.warn({ requestId: this.call.id, upstream: this.call.facts.upstream, why }, 'a stream broke off');
  }

  #errorEvent(): Buffer {
    const error = fail(this.#errorCode, { message: 'The upstream broke off its answer.' });
    return errorEvent(this.call.protocol, error, this.call.id);
  }
}

/** Our envelope as the protocol's own error event; Chat clients look for `error` alone. */
function errorEvent(protocol: Protocol, error: GatewayError, requestId: string): Buffer {
  const envelope = errorEnvelope(error, requestId);
  return Buffer.from(
    protocol === 'messages'
      ? `event: error\ndata: ${JSON.stringify(envelope)}\n\n`
      : `data: ${JSON.stringify({ error: envelope.error })}\n\n`,
  );
}
