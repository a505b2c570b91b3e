import type { Call } from '../../core/calls/call';
import type { NewIds } from '../../core/calls/new-ids';
import type { AttemptTrace } from '../../core/calls/trace';
import type { Candidate, Upstream } from '../../core/catalog/catalog';
import type { AnswerRoom } from '../../core/http/buffered-bytes';
import type { TraceHeaders } from '../../core/traces/tracing';
import { askUpstream, type UpstreamCall } from '../../core/wire/ask-upstream';
import { classifyDialFailure, type Egress, wasReusedConnection } from '../../core/wire/egress';
import type { ExchangeHead, UpstreamExchange } from '../../core/wire/upstream-exchange';
import type { UpstreamSocket } from '../../core/wire/upstream-socket';

/** The part of a call that an attempt needs. */
export type AttemptingCall = Pick<Call, 'onLeave'> & {
  /** See `Call`; undefined for a mirror, which no customer pays for and which ends as soon as it is cancelled. */
  readonly leftAtMs?: number | undefined;
  readonly isOutOfMoney?: boolean;
  onCutOff?(listener: () => void): void;
  /** Returns for how long the gateway reads this upstream after the client has left. */
  readOnMs?(upstream: Upstream): number;
  /** The account whose share of memory a stream read ahead takes; undefined: the gateway does not read ahead. */
  readonly accountId?: string;
  /** The room of the answer; undefined if no client waits for its bytes. */
  readonly room?: AnswerRoom | undefined;
  /** The upstream side of the client's WebSocket, for upstreams that accept one. */
  readonly upstreamSocket?: UpstreamSocket | undefined;
  /** The gateway's id of the call, for ids in translated answers; undefined if no client reads them. */
  readonly id?: string;
  /** Finds the ids of objects that the answer creates; undefined if it cannot create any. */
  readonly newIds?: NewIds | undefined;
  /** The trace of this attempt; undefined if it is not sampled. */
  readonly trace?: AttemptTrace | undefined;
  /** The headers that tell the upstream the trace; undefined if nothing is traced. */
  readonly traceHeaders?: TraceHeaders | undefined;
};

interface Answering extends ExchangeHead {
  readonly exchange: UpstreamExchange;
}

/** Sends the call to a candidate. Resolves when the head of the answer is there. */
export async function send(
  candidate: Candidate,
  request: UpstreamCall,
  egress: Egress,
  patience: Patience,
  socket: UpstreamSocket | undefined,
): Promise<Answering> {
  const { upstream } = candidate;
  for (let isFresh = false; ; isFresh = true) {
    try {
      const asked =
        socket !== undefined && upstream.webSocket === true && candidate.dialect === undefined
          ? socket.ask(candidate, request, egress, isFresh)
          : askUpstream(candidate, request, isFresh ? egress.fresh(upstream) : egress.pool(upstream), isFresh);
      const exchange = asked instanceof Promise ? await asked : asked;
      patience.watch(exchange);
      const { status, headers } = await exchange.head;
      patience.headArrived();
      return { exchange, status, headers };
    } catch (error) {
      // The upstream closed an idle connection just when the gateway reused it, and never saw the request.
      const isFree = wasReusedConnection(error) && classifyDialFailure(error) === 'reset' && patience.mayAskAgain;
      if (isFresh || !isFree) throw error;
    }
  }
}

/** The longest time for connecting and for the head of the answer together; docs/contract.md, section 10. */
const LONGEST_WAIT_FOR_HEAD_MS = 120_000;

/**
 * Ends an attempt if the head, or the first content of a stream, does not come in time. If the client leaves, the attempt ends at
 * once unless the upstream has taken the whole request; then it ends after `readOnMs`.
 */
export class Patience {
  readonly #head: NodeJS.Timeout;
  readonly #content: NodeJS.Timeout | undefined;
  readonly #stopListening: () => void;
  readonly #call: AttemptingCall;
  readonly #readOnMs: number | undefined;
  #absence: NodeJS.Timeout | undefined;
  #exchange: UpstreamExchange | undefined;
  /** The upstream was silent for too long. */
  isOver = false;
  /** The attempt was cancelled because the client left or the call was cut off. */
  isCancelled = false;
  /** The client left after the upstream took the request. Then the time for reading on, or the money, ran out. */
  isAbandoned = false;
  #hasEnded = false;

  constructor(upstream: Upstream, isStream: boolean, call: AttemptingCall) {
    const { timeouts } = upstream;
    this.#call = call;
    this.#readOnMs = call.readOnMs?.(upstream);
    const overMs = Math.min(timeouts.connectMs + timeouts.headersMs, LONGEST_WAIT_FOR_HEAD_MS);
    this.#head = setTimeout(() => this.#giveUp(), overMs);
    if (isStream && timeouts.firstTokenMs !== undefined) {
      this.#content = setTimeout(() => this.#giveUp(), timeouts.firstTokenMs);
    }
    this.#stopListening = call.onLeave(() => this.#clientLeft());
  }

  /** True while a request that failed on a reused connection may be sent again: the client still waits. */
  get mayAskAgain(): boolean {
    return !this.#hasEnded && this.#absence === undefined;
  }

  watch(exchange: UpstreamExchange): void {
    this.#exchange = exchange;
    if (this.#hasEnded) exchange.cancel();
  }

  headArrived(): void {
    clearTimeout(this.#head);
  }

  /** Stops the timers, because the attempt has a result. From here on later steps watch the answer. */
  stop(): void {
    clearTimeout(this.#head);
    clearTimeout(this.#content);
    clearTimeout(this.#absence);
    this.#stopListening();
  }

  #giveUp(): void {
    this.isOver = true;
    this.#end();
  }

  #clientLeft(): void {
    const { leftAtMs, isOutOfMoney } = this.#call;
    const isTaken = this.#exchange?.isRequestSent === true;
    if (isOutOfMoney && isTaken) return void this.#abandon();
    if (leftAtMs === undefined || this.#readOnMs === undefined || !isTaken) return void this.#cancel();
    this.#absence = setTimeout(() => this.#abandon(), leftAtMs + this.#readOnMs - performance.now());
    this.#call.onCutOff?.(() => (this.#call.isOutOfMoney ? this.#abandon() : this.#cancel()));
  }

  #abandon(): void {
    this.isAbandoned = true;
    this.#end();
  }

  #cancel(): void {
    this.isCancelled = true;
    this.#end();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#exchange?.cancel();
  }
}
