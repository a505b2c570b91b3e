import type { ServerResponse } from 'node:http';
import { annotateCost } from '../../core/annotate-cost';
import type { AttemptOutcome, StreamAnswer } from '../../core/call';
import { classifyDialFailure } from '../../core/egress';
import type { NotedEvent } from '../../core/event-reader';
import type { Gateway } from '../../core/gateway';
import { AdapterFault } from '../../core/guarded-adapter';
import type { StreamFollower } from '../../core/upstream';
import { DrainBounds } from './drain';
import { brokenOff, codeOf } from './error-event';
import type { AnsweredCall } from './headers';

export interface StreamSettings {
  readonly annotateStreamCost: boolean;
  readonly exposeAccountHeaders: boolean;
  readonly gateway: Pick<Gateway, 'log' | 'health' | 'isDraining'>;
}

/** Why a stream is not whole. */
interface Break {
  readonly outcome: AttemptOutcome;
  /** The upstream's own error event, when it told of it. */
  readonly told: Buffer | undefined;
}

/** Gives a stream to its caller; where somebody can go on with what breaks off, as one stream. */
export class StreamRelay {
  #answer: StreamAnswer;
  readonly #follower: StreamFollower | undefined;
  #isContinued = false;
  #contentRelayed = false;
  /** As far as it was relayed: the reader may be ahead. */
  #isWhole = false;
  /** It is whole, and has told what was used. */
  #isCounted = false;
  #break: Break | undefined;
  /** The client has left, and the upstream is read on without it. */
  #drain: DrainBounds | undefined;
  readonly #stopListening: () => void;

  constructor(
    private readonly call: AnsweredCall,
    answer: StreamAnswer,
    private readonly response: ServerResponse,
    private readonly settings: StreamSettings,
  ) {
    this.#answer = answer;
    this.#follower = answer.goOn === undefined ? undefined : answer.candidate.adapter.continuation?.follow();
    // What is written to a connection that is just closing is nobody's fault.
    response.on('error', () => undefined);
    this.#stopListening = call.onLeave(() => this.#clientLeft());
  }

  async run(): Promise<void> {
    try {
      do await this.#relayAnswer();
      while (await this.#goesOn());
    } finally {
      // Who leaves while the end is on its way has nothing more to be drained.
      this.#stopListening();
      this.#drain?.stop();
    }
    if (this.call.isCutOff && !this.#isWhole) this.call.facts.errorCode = 'DRAINING';
    await this.#settleAsItStands();
    if (this.#isGone) return void this.response.destroy();
    const last = this.#isWhole ? this.#rest() : (this.#break?.told ?? brokenOff(this.call, this.#break?.outcome));
    this.response.end(last);
  }

  async #relayAnswer(): Promise<void> {
    const { head, chunks } = this.#answer;
    try {
      await this.#give(head.splice(0));
      do await this.#room();
      while (await this.#relayNext());
      if (!this.#isWhole) this.#breakOff('the stream ended early', 'reset');
    } catch (error) {
      if (!this.#isWhole) this.#breakOff(error instanceof Error ? error.message : String(error), outcomeOf(error));
    } finally {
      chunks.cancel();
    }
  }

  /** True when more may follow. A step of its own, so that nothing is held of it while a caller takes its time. */
  async #relayNext(): Promise<boolean> {
    if (this.#break !== undefined) return false;
    const { events, chunks } = this.#answer;
    if (!chunks.isReady) await chunks.ready();
    const chunk = chunks.take();
    if (chunk === undefined || this.#isGivenUp) return false;
    this.#drain?.note(chunk.length);
    await this.#give(events.read(chunk));
    return true;
  }

  /** The events' bytes in as few pieces as can be; money is settled before the event that tells of it. */
  async #give(events: readonly NotedEvent[]): Promise<void> {
    const pieces: Buffer[] = [];
    for (const noted of events) {
      const { note, isWhole } = noted;
      if (note.malformed === true) {
        this.#breakOff('an event could not be understood', 'reset');
        break;
      }
      this.call.meter.note(note);
      if (note.error !== undefined) {
        this.#breakOff('the upstream reported an error', 'error_event', noted.raw);
        break;
      }
      this.#isWhole = isWhole;
      if (note.content === true) this.#contentRelayed = true;
      const tellsUsage = note.finalUsage === true && isWhole;
      if (tellsUsage) this.#isCounted = true;
      if (tellsUsage && !this.#isGone) {
        this.#write(pieces.splice(0));
        await this.#room();
        pieces.push(await this.#settled(noted));
      } else {
        this.#show(noted, pieces);
      }
    }
    this.#write(pieces);
  }

  #show({ raw, event }: NotedEvent, pieces: Buffer[]): void {
    if (!this.#isContinued) {
      this.#follower?.note(event);
      pieces.push(raw);
      return;
    }
    const shown = this.#follower?.continued(event, undefined);
    if (shown !== undefined) pieces.push(Buffer.from(shown));
  }

  async #settled({ raw, event }: NotedEvent): Promise<Buffer> {
    const { meter, reservation } = this.call;
    const counted = meter.read();
    const { chargedE8 } = await reservation.settle({ candidate: this.#answer.candidate, ...counted });
    const shown = this.#isContinued ? Buffer.from(this.#follower?.continued(event, counted.usage) ?? '') : raw;
    return this.settings.annotateStreamCost ? annotateLast(shown, chargedE8) : shown;
  }

  #write(pieces: readonly Buffer[]): void {
    if (pieces.length > 0 && !this.#isGone) this.response.write(inOnePiece(pieces));
  }

  /** At the caller's pace: what it does not take is not read from the upstream. */
  #room(): Promise<void> | undefined {
    if (!this.response.writableNeedDrain || this.call.hasLeft) return undefined;
    return new Promise<void>((resolve) => {
      const stopListening = this.call.onLeave(resolve);
      this.response.once('drain', () => {
        stopListening();
        resolve();
      });
    });
  }

  /** True when somebody else goes on from where this broke off. */
  async #goesOn(): Promise<boolean> {
    if (this.#isWhole || this.#break === undefined || this.call.hasLeft) return false;
    const { goOn, candidate } = this.#answer;
    const { outcome } = this.#break;
    const said = this.#contentRelayed ? this.#follower?.said : undefined;
    if (goOn === undefined || said === undefined) {
      const failure = { outcome, status: this.#answer.status, verdict: 'next', retryAfterMs: undefined } as const;
      this.settings.gateway.health.failed(candidate, failure);
      return false;
    }
    const { meter } = this.call;
    const next = await goOn({ outcome, said, outputTokens: meter.readPartial().usage.outputTokens ?? 0 });
    if (next === undefined) return false;
    meter.goOn(next.candidate);
    this.#follower?.goOn(said.trimEnd());
    this.#answer = { ...next, goOn };
    this.#isContinued = true;
    this.#break = undefined;
    this.call.facts.errorCode = undefined;
    return !this.call.hasLeft;
  }

  /** What has come and was not relayed before the client left is not charged, and so not looked at. */
  get #isGivenUp(): boolean {
    return this.call.hasLeft && this.#drain === undefined && !this.#isWhole;
  }

  /** The client has left. A call that is cut off has one that still listens. */
  get #isGone(): boolean {
    return this.call.hasLeft && !this.call.isCutOff;
  }

  #clientLeft(): void {
    const drains =
      this.#isGone && this.call.reservation.onClientAbort === 'drain' && this.#contentRelayed && !this.#isCounted;
    const { isDraining } = this.settings.gateway;
    if (drains) this.#drain = new DrainBounds(isDraining, () => this.#answer.chunks.cancel());
    else this.#answer.chunks.cancel();
  }

  /** Charges by how far the stream has come; the first settlement stands. */
  async #settleAsItStands(): Promise<void> {
    const { meter, reservation } = this.call;
    const { candidate } = this.#answer;
    if (this.#isWhole && this.#drain === undefined) await reservation.settle({ candidate, ...meter.read() });
    else if (this.#isWhole) await reservation.settle({ ...meter.read(), candidate, billing: 'partial' });
    else if (this.#isGone && this.#contentRelayed)
      await reservation.settle({ ...meter.readPartial(), candidate, billing: 'partial' });
    else await reservation.settle({ billing: 'released' });
  }

  /** The first reason counts. */
  #breakOff(why: string, outcome: AttemptOutcome, told?: Buffer): void {
    if (this.#break !== undefined) return;
    this.#break = { outcome, told };
    if (this.call.hasLeft) return;
    this.call.facts.errorCode = codeOf(outcome);
    const { id, facts } = this.call;
    this.settings.gateway.log.warn({ requestId: id, upstream: facts.upstream, why }, 'a stream broke off');
  }

  /** What stands behind the last whole event, when nothing was wrong with the stream. */
  #rest(): Buffer | undefined {
    return this.#break === undefined && !this.#isContinued ? this.#answer.events.rest() : undefined;
  }
}

function outcomeOf(error: unknown): AttemptOutcome {
  if (error instanceof AdapterFault) return 'adapter_fault';
  return classifyDialFailure(error) === 'timeout' ? 'timeout' : 'reset';
}

/** Events that came together stand side by side: then nothing is copied. */
function inOnePiece(pieces: readonly Buffer[]): Buffer {
  const [first] = pieces as readonly [Buffer, ...Buffer[]];
  let end = first.byteOffset;
  for (const { buffer, byteOffset, byteLength } of pieces) {
    if (buffer !== first.buffer || byteOffset !== end) return Buffer.concat(pieces);
    end += byteLength;
  }
  return Buffer.from(first.buffer, first.byteOffset, end - first.byteOffset);
}

/** Of several events the last one tells the usage. */
function annotateLast(raw: Buffer, costE8: bigint): Buffer {
  const start = raw.lastIndexOf('\n\nevent:', raw.length - 3);
  if (start === -1) return annotateCost(raw, costE8);
  return Buffer.concat([raw.subarray(0, start + 2), annotateCost(raw.subarray(start + 2), costE8)]);
}
