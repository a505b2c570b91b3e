import type { Call } from '../../core/calls/call';
import type { NewIds } from '../../core/calls/new-ids';
import type { AttemptTrace } from '../../core/calls/trace';
import type { Candidate, Upstream } from '../../core/catalog/catalog';
import type { TraceHeaders } from '../../core/traces/tracing';
import { askUpstream, type UpstreamCall } from '../../core/wire/ask-upstream';
import { classifyDialFailure, type Egress, wasReusedConnection } from '../../core/wire/egress';
import type { ExchangeHead, UpstreamExchange } from '../../core/wire/upstream-exchange';
import type { UpstreamSocket } from '../../core/wire/upstream-socket';

/** What an attempt needs to know of its call. */
export type AttemptingCall = Pick<Call, 'onLeave'> & {
  /** See `Call`; absent for a call that nobody pays for, which ends as soon as it is cancelled. */
  readonly leftAtMs?: number | undefined;
  readonly isOutOfMoney?: boolean;
  onCutOff?(listener: () => void): void;
  /** For how long an upstream is read on after the client has left. */
  readOnMs?(upstream: Upstream): number;
  /** Whose memory a stream that is read ahead takes; absent: it is not read ahead. */
  readonly accountId?: string;
  /** Of an unstreamed answer; whoever sends more has failed. */
  readonly largestAnswerBytes?: number;
  /** Where a call is asked that came over a WebSocket, at upstreams that have one. */
  readonly upstreamSocket?: UpstreamSocket | undefined;
  /** Of the gateway, for ids in answers that are translated; absent where nobody reads them. */
  readonly id?: string;
  /** Finds the ids that the answer makes, for a call that can make any. */
  readonly newIds?: NewIds | undefined;
  /** Of this attempt; undefined where it is not sampled. */
  readonly trace?: AttemptTrace | undefined;
  /** Its place in a trace, for the upstream; undefined where nothing is traced. */
  readonly traceHeaders?: TraceHeaders | undefined;
};

interface Answering extends ExchangeHead {
  readonly exchange: UpstreamExchange;
}

/** Asks a candidate; resolves when the head of its answer is there. */
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
      // The upstream closed an idle connection at the very moment it was used again, and never saw the request.
      const isFree = wasReusedConnection(error) && classifyDialFailure(error) === 'reset' && patience.mayAskAgain;
      if (isFresh || !isFree) throw error;
    }
  }
}

/** Connecting and waiting for the head of the answer together take at most this long; docs/contract.md, section 10. */
const LONGEST_WAIT_FOR_HEAD_MS = 120_000;

/**
 * Ends an attempt when the head does not come in time, or the first content of a stream. Ends it when the client leaves, at once
 * where the upstream has not taken the whole request, else after `readOnMs`.
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
  /** The attempt was ended because the client left, or the call was cut off. */
  isCancelled = false;
  /** The client left after the upstream took the request, and the time for reading on, or the money, is over. */
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

  /** A request that broke on a used connection may be sent again: the client is there and waits. */
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

  /** The attempt has come to something: from here on others watch. */
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
