import type { ServerResponse } from 'node:http';
import type { Counted, StreamAnswer } from '../../core/calls/call';
import { drainMs, endingOfStream } from '../../core/calls/unfinished';
import { AdapterFault } from '../../core/catalog/guarded-adapter';
import { outputTokens } from '../../core/catalog/usage';
import type { Gateway } from '../../core/gateway/gateway';
import { SMALL_BODY_BYTES } from '../../core/http/buffered-bytes';
import { ClientLeft } from '../../core/http/client-left';
import { eachRead, inOne } from '../../core/wire/chunk-reader';
import type { AttemptOutcome } from '../../core/wire/dial-failure';
import { classifyDialFailure } from '../../core/wire/egress';
import { annotateCost } from '../../core/wire/event-data';
import type { NotedEvent } from '../../core/wire/event-reader';
import { Pauses } from '../../core/wire/pauses';
import { brokenOff, codeOf, type RelayedEvents } from './error-event';
import { type AnsweredCall, answerHeaders, noteAnswer } from './headers';
import { asksForUsage, HeldFinish } from './held-finish';
import { type KeepAlive, type QuietStream, signOf } from './keep-alive';

interface StreamSettings {
  readonly annotateStreamCost: boolean;
  readonly exposeAccountHeaders: boolean;
  readonly usageWithinMs: number;
  /** The timer for keep-alive bytes; undefined: the relay sends none. */
  readonly keepAlive: KeepAlive | undefined;
  readonly gateway: Pick<Gateway, 'log' | 'health'>;
}

interface Break {
  readonly outcome: AttemptOutcome;
  /** The upstream's own error event, if it sent one. */
  readonly errorEvent: Buffer | undefined;
}

/** How many bytes one write has at most, so that the relay notices a client that does not read. */
const MAX_GATHERED_BYTES = 16 * 1_024;
/** After the client left: how many bytes behind the stop reason the gateway reads at most, to find the usage. */
const USAGE_WITHIN_BYTES = 64 * 1_024;

/**
 * Sends a stream, event by event, at the client's pace. It ends as the upstream's stream does, or with the protocol's own error event, so
 * an unfinished answer never looks complete. If the client has disconnected, the gateway reads the stream only for its usage.
 */
export async function sendStream(
  call: AnsweredCall,
  answer: StreamAnswer,
  response: ServerResponse,
  settings: StreamSettings,
): Promise<void> {
  noteAnswer(call, answer);
  const isGone = call.leftAtMs !== undefined;
  if (!isGone) {
    const headers = answerHeaders(call, answer, settings.exposeAccountHeaders);
    response.writeHead(answer.status, [...headers, 'cache-control', 'no-cache']);
    // The gateway held the preamble (events before any content) for its full time, and no event arrived. The client now receives at least the status.
    if (answer.head.length === 0) response.flushHeaders();
  }
  await new StreamRelay(call, answer, response, settings).run();
  if (isGone) throw new ClientLeft();
}

class StreamRelay implements QuietStream {
  place = -1;
  /** Since when the client has received nothing because the upstream sent nothing; undefined after a write. */
  silentSinceMs: number | undefined;
  #contentRelayed = false;
  /** Whether the client has received the whole answer. The gateway may have read more from the upstream than the client has received. */
  #isWhole = false;
  /** Whether the answer is whole and its usage is known. */
  #isCounted = false;
  #break: Break | undefined;
  readonly #gathered: Buffer[] = [];
  /** The first and last event that the client received. A Responses error event is built from them. */
  readonly #relayed: RelayedEvents = { first: undefined, last: undefined };
  /** The timer that limits reading after the client has disconnected, and the one that limits waiting for the usage of a whole answer. */
  #absence: NodeJS.Timeout | undefined;
  #usageWait: NodeJS.Timeout | undefined;
  /** How many bytes arrived behind the stop reason after the client disconnected. */
  #bytesBehind = 0;
  /** Whether the time limit for a disconnected client ended before the answer was whole. */
  #isGivenUp = false;
  /** Holds the chunk with the finish reason until the usage arrives; undefined: the client receives the usage as the upstream sends it. */
  readonly #finish: HeldFinish | undefined;
  readonly #stopListening: () => void;
  #pauses: Pauses | undefined;

  constructor(
    private readonly call: AnsweredCall,
    private readonly answer: StreamAnswer,
    private readonly response: ServerResponse,
    private readonly settings: StreamSettings,
  ) {
    if (call.protocol === 'chat' && !asksForUsage(call.request.members))
      this.#finish = new HeldFinish(settings.usageWithinMs, (chunk) => this.#giveLate(chunk));
    // A write fails if the connection is just closing. This is no error.
    response.on('error', () => undefined);
    this.#stopListening = call.onLeave(() => this.#clientLeft());
  }

  async run(): Promise<void> {
    this.settings.keepAlive?.watch(this);
    try {
      await this.#relayAnswer();
    } finally {
      this.settings.keepAlive?.forget(this);
      this.#pauses?.stop();
      // From here on a disconnect of the client has no effect, because nothing is left to read from the upstream.
      this.#stopListening();
      clearTimeout(this.#absence);
      clearTimeout(this.#usageWait);
      this.#finish?.keep();
    }
    if (this.#break !== undefined && !this.#isWhole && !this.call.hasLeft) this.#noteFailed(this.#break);
    if (this.call.cutOffBy !== undefined && !this.#isWhole) this.call.facts.errorCode = this.call.cutOffBy.code;
    await this.#settleAsItStands();
    if (this.#isGone) return void this.response.destroy();
    this.#write(this.#finish?.take() ?? []);
    const last = this.#isWhole
      ? (this.#lateError ?? this.#rest())
      : (this.#break?.errorEvent ?? brokenOff(this.call, this.#break?.outcome, this.#relayed));
    this.response.end(last);
  }

  async #relayAnswer(): Promise<void> {
    const { head, chunks } = this.answer;
    try {
      await this.#give(head.splice(0));
      this.#flush();
      await this.#room();
      const [relay, wait] = [() => this.#relayRead(), () => this.#waitsForUpstream()];
      while (this.#break === undefined && (await eachRead(chunks, relay, wait))) {
        await this.#room();
        const { pendingBytes } = this.answer.events;
        if (pendingBytes <= SMALL_BODY_BYTES) this.call.room?.giveBack();
        else if (!this.#isGone) await this.#roomFor(pendingBytes);
      }
      if (!this.#isWhole) this.#breakOff('the stream of the upstream ended early', 'reset');
    } catch (error) {
      if (!this.#isWhole) this.#breakOff(error instanceof Error ? error.message : String(error), outcomeOf(error));
    } finally {
      chunks.cancel();
    }
  }

  /** Relays what has arrived. Returns undefined if the relay only waits for the upstream, and false at the end of the stream. */
  #relayRead(): boolean | Promise<boolean> | undefined {
    const more = this.#relayReady();
    if (more !== true || this.response.writableNeedDrain || this.answer.events.pendingBytes > SMALL_BODY_BYTES)
      return more;
    this.call.room?.giveBack();
    return undefined;
  }

  /**
   * Relays in one write all chunks that have arrived. Returns true if more may follow, and a promise only while the call is settled. This
   * code is a separate method, so that no chunk stays in memory while a client reads slowly.
   */
  #relayReady(): boolean | Promise<boolean> {
    const { events, chunks } = this.answer;
    let takenBytes = 0;
    try {
      do {
        const chunk = chunks.take();
        if (chunk === undefined || (this.call.cutOffBy !== undefined && !this.#isWhole)) return false;
        if (this.#isGone && this.#isWhole) this.#bytesBehind += chunk.length;
        if (this.#bytesBehind > USAGE_WITHIN_BYTES) chunks.cancel();
        const settling = this.#give(events.read(chunk));
        if (settling !== undefined) return settling.then(() => this.#flush()).then(() => true);
        takenBytes += chunk.length;
      } while (this.#break === undefined && chunks.isReady && takenBytes < MAX_GATHERED_BYTES);
      return this.#break === undefined;
    } finally {
      this.#flush();
    }
  }

  #waitsForUpstream(): void {
    if (this.#isWhole && (this.#isGone || !this.#isCounted))
      this.#usageWait ??= setTimeout(() => this.answer.chunks.cancel(), this.settings.usageWithinMs);
    this.silentSinceMs ??= performance.now();
  }

  /** Relays each event and removes it from the list. Returns a promise only if the call must be settled before the event with the usage is sent. */
  #give(events: NotedEvent[]): Promise<void> | undefined {
    for (let noted = events.shift(); noted !== undefined; noted = events.shift()) {
      const { note, isWhole } = noted;
      if (note.malformed === true) {
        this.#breakOff('an event of the upstream is not valid', 'reset');
        return undefined;
      }
      this.call.meter.note(note);
      if (note.error !== undefined) {
        this.#breakOff('the upstream reported an error', 'error_event', noted.raw);
        return undefined;
      }
      this.#isWhole = isWhole;
      if (note.finish === true) this.call.trace?.noteFinish(noted.event);
      if (note.content === true) this.#contentRelayed = true;
      const reportsUsage = note.finalUsage === true && isWhole;
      if (reportsUsage) this.#isCounted = true;
      if (reportsUsage && !this.#isGone && this.#finish?.repeats(note) === true) continue;
      if (reportsUsage) return this.#giveUsage(noted).then(() => this.#give(events));
      if (!this.#isGone) this.#show(noted);
    }
    return undefined;
  }

  async #giveUsage(noted: NotedEvent): Promise<void> {
    if (this.#isGone) {
      await this.#settled(noted);
      return;
    }
    this.#finish?.keep();
    this.#flush();
    await this.#room();
    const shown = await this.#settled(noted);
    this.#gathered.push(...(this.#finish?.withUsage(noted, shown) ?? [shown]));
  }

  #show(noted: NotedEvent): void {
    const { raw, event } = noted;
    // An event without bytes is skipped, because the translation has dropped it.
    if (raw.length === 0) return;
    if (this.call.protocol === 'responses') {
      this.#relayed.first ??= event;
      this.#relayed.last = event;
    }
    if (this.#finish === undefined) this.#gathered.push(raw);
    else this.#finish.pass(noted, this.#gathered);
  }

  async #settled({ raw, note }: NotedEvent): Promise<Buffer> {
    const { meter, reservation } = this.call;
    const counted = meter.read();
    const { chargedE8 } = await reservation.settle({ candidate: this.answer.candidate, ...counted });
    return this.settings.annotateStreamCost ? annotateCost(raw, chargedE8, note.usageAt) : raw;
  }

  #flush(): void {
    this.#write(this.#gathered);
    this.#gathered.length = 0;
  }

  #write(pieces: readonly Buffer[]): void {
    if (pieces.length === 0 || this.#isGone) return;
    this.silentSinceMs = undefined;
    this.response.write(inOne(pieces));
  }

  /** Sends a held chunk whose usage has not arrived in time. The relay still waits for the upstream. */
  #giveLate(chunk: Buffer): void {
    this.#write([chunk]);
    this.silentSinceMs = performance.now();
  }

  /** Sends keep-alive bytes. The relay writes only whole events, so these bytes never split an event. A client that does not read receives none. */
  giveSign(nowMs: number): void {
    this.silentSinceMs = nowMs;
    const isSentWhole = this.#isWhole && this.#finish?.isHolding !== true;
    if (isSentWhole || this.call.hasLeft || this.response.writableNeedDrain) return;
    this.response.write(signOf(this.call.protocol));
  }

  /** Waits until the client has read what was written. Until then the relay does not read from the upstream. */
  #room(): Promise<void> | undefined {
    if (!this.response.writableNeedDrain || this.call.hasLeft) return undefined;
    this.#pauses ??= new Pauses();
    this.#pauses.begin();
    this.call.room?.wait();
    return new Promise<void>((resolve) => {
      const stopListening = this.call.onLeave(resolve);
      this.response.once('drain', () => {
        stopListening();
        this.#pauses?.end();
        resolve();
      });
    });
  }

  /** Waits for memory for a long event. If the account's clients read too slowly to free it, the relay disconnects the client. */
  async #roomFor(bytes: number): Promise<void> {
    const hasRoom = await this.call.room?.arrive(bytes);
    if (hasRoom === false) this.response.destroy();
  }

  #noteFailed({ outcome }: Break): void {
    const { candidate, status } = this.answer;
    const failure = { outcome, status, verdict: 'next', retryAfterMs: undefined } as const;
    const { key, facts } = this.call;
    const attempt = { accountId: key.accountId, ms: 0, mayEject: facts.strategy !== 'direct' };
    this.settings.gateway.health.failed(candidate, failure, attempt);
  }

  /** Whether the client has disconnected. If only this process cut the call off, the client still listens. */
  get #isGone(): boolean {
    return this.call.leftAtMs !== undefined;
  }

  /** Continues to read the upstream's stream for its usage. The client receives nothing more. */
  #clientLeft(): void {
    const { leftAtMs } = this.call;
    if (leftAtMs === undefined || this.#isCounted) {
      this.answer.chunks.cancel();
      return;
    }
    const maxMs = drainMs(this.call, this.answer.candidate.upstream);
    this.#absence = setTimeout(() => this.#giveUp(), leftAtMs + maxMs - performance.now());
    this.call.onCutOff(() => this.answer.chunks.cancel());
  }

  #giveUp(): void {
    if (this.#usageWait !== undefined) return;
    this.#isGivenUp = true;
    this.answer.chunks.cancel();
  }

  /** Settles the call by the part of the stream that has arrived. Does nothing if the call is already settled. */
  async #settleAsItStands(): Promise<void> {
    const { meter, reservation } = this.call;
    const { answer } = this;
    if (this.#isWhole) {
      const counted = meter.read();
      if (counted.billing === 'actual') this.#noteSpeed(counted, performance.now() - answer.headAtMs);
      await reservation.settle({ candidate: answer.candidate, ...counted });
      return;
    }
    const [hasContent, isCancelled] = [this.#contentRelayed, this.#isGivenUp];
    const stream = { ...answer, hasContent, isCancelled, clientPauses: this.#pauses };
    await reservation.settle(endingOfStream(this.call, stream, this.settings.gateway.health));
  }

  #noteSpeed({ usage }: Counted, ms: number): void {
    const tokens = outputTokens(usage);
    // The speed is recorded only if the client caused no pauses, because a slow client would make the model look slow.
    if (tokens !== undefined && this.#pauses === undefined)
      this.settings.gateway.health.spoke(this.answer.candidate, tokens, ms);
  }

  /** Records why the stream broke off. Only the first reason counts. */
  #breakOff(why: string, outcome: AttemptOutcome, errorEvent?: Buffer): void {
    if (this.#break !== undefined) return;
    this.#break = { outcome, errorEvent };
    // A whole answer is charged and has no error, whatever follows its stop reason.
    if (this.call.hasLeft || (this.#isWhole && this.#lateError === undefined)) return;
    this.call.facts.errorCode = codeOf(outcome);
    this.call.trace?.noteBreak(outcome);
    const { id, facts } = this.call;
    this.settings.gateway.log.warn(
      { requestId: id, upstream: facts.upstream, why },
      'a stream was interrupted after content was sent',
    );
  }

  /** The error event for a translated answer with content after its usage. A client that speaks the upstream's protocol receives such content unchanged. */
  get #lateError(): Buffer | undefined {
    return this.answer.events.translation && this.#break?.errorEvent;
  }

  /** Returns the bytes behind the last whole event if the stream ended without an error. */
  #rest(): Buffer | undefined {
    return this.#break === undefined ? this.answer.events.rest() : undefined;
  }
}

function outcomeOf(error: unknown): AttemptOutcome {
  if (error instanceof AdapterFault) return 'adapter_fault';
  return classifyDialFailure(error) === 'timeout' ? 'timeout' : 'reset';
}
