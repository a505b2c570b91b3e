import type { MaybeLater } from '../../core/base/maybe-later';
import type { Call, CallFields } from '../../core/calls/call';
import { drainMs } from '../../core/calls/unfinished';
import type { Candidate, Upstream } from '../../core/catalog/catalog';
import { askUpstream, type UpstreamCall } from '../../core/wire/ask-upstream';
import { classifyDialFailure, type Egress, wasReusedConnection } from '../../core/wire/egress';
import type { ExchangeHead, UpstreamExchange } from '../../core/wire/upstream-exchange';
import type { UpstreamSocket } from '../../core/wire/upstream-socket';

/** The call of an attempt. A mirror has no key: no customer pays for it, and it ends as soon as it is cancelled. */
export type AttemptingCall = Pick<Call, 'onLeave'> &
  Partial<
    Pick<Call, 'id' | 'leftAtMs' | 'newIds' | 'onCutOff' | 'room' | 'traceHeaders' | 'upstreamSocket'> &
      Pick<CallFields, 'key' | 'request' | 'reservation'>
  >;

/** What an attempt sends, and how. */
interface Sending {
  readonly candidate: Candidate;
  readonly asked: UpstreamCall;
  readonly egress: Egress;
  readonly patience: AttemptDeadlines;
  readonly socket: UpstreamSocket | undefined;
}

/**
 * Sends the call to a candidate.
 * @param answered gets the head of the answer
 * @param failed gets the reason why there is none
 */
export function send(
  sending: Sending,
  answered: (exchange: UpstreamExchange, head: ExchangeHead) => void,
  failed: (error: unknown) => void,
  isFresh = false,
): void {
  const { patience } = sending;
  const broken = (error: unknown): void => {
    // The upstream closed an idle connection just when the gateway reused it, and never saw the request.
    const isFree = wasReusedConnection(error) && classifyDialFailure(error) === 'reset' && patience.mayAskAgain;
    if (isFresh || !isFree) failed(error);
    else send(sending, answered, failed, true);
  };
  const watch = (exchange: UpstreamExchange): void => {
    patience.watch(exchange);
    exchange.whenHead((head) => {
      patience.headArrived();
      answered(exchange, head);
    }, broken);
  };
  try {
    const exchange = ask(sending, isFresh);
    if (exchange instanceof Promise) exchange.then(watch).catch(broken);
    else watch(exchange);
  } catch (error) {
    broken(error);
  }
}

function ask({ candidate, asked, egress, patience, socket }: Sending, isFresh: boolean): MaybeLater<UpstreamExchange> {
  const { upstream, dialect } = candidate;
  if (socket !== undefined && upstream.webSocket === true && dialect === undefined)
    return socket.ask(candidate, asked, egress, isFresh);
  const pool = isFresh ? egress.fresh(upstream) : egress.pool(upstream);
  return askUpstream(candidate, asked, pool, isFresh, patience.thinks);
}

/** The longest time for connecting and for the head of the answer together; docs/contract.md, section 10. */
const MAX_HEAD_WAIT_MS = 120_000;

/**
 * Ends an attempt if the head, or the first content of a stream, does not come in time. If the client leaves, the attempt ends at
 * once unless the upstream has taken the whole request; then it ends after `drainMs`.
 */
export class AttemptDeadlines {
  /** The call may be silent for as long as its limit explains. */
  readonly thinks: boolean;
  readonly #head: NodeJS.Timeout;
  readonly #content: NodeJS.Timeout | undefined;
  readonly #stopListening: () => void;
  readonly #drainMs: number | undefined;
  #absence: NodeJS.Timeout | undefined;
  #exchange: UpstreamExchange | undefined;
  /** The upstream was silent for too long. */
  isOver = false;
  /** The attempt was cancelled because the client left or the call was cut off. */
  isCancelled = false;
  /** The client left after the upstream took the request. Then the time for reading on, or the money, ran out. */
  isAbandoned = false;
  #hasEnded = false;

  /** @param thinkingMs the time for an unstreamed call whose limit explains more than the timeouts; undefined for others */
  constructor(
    upstream: Upstream,
    isStream: boolean,
    private readonly call: AttemptingCall,
    thinkingMs: number | undefined,
  ) {
    const { timeouts } = upstream;
    this.thinks = thinkingMs !== undefined;
    const { request, reservation } = call;
    if (request !== undefined && reservation !== undefined) this.#drainMs = drainMs({ request, reservation }, upstream);
    const overMs = Math.min(timeouts.connectMs + timeouts.headersMs, MAX_HEAD_WAIT_MS);
    this.#head = setTimeout(() => this.#giveUp(), Math.max(overMs, thinkingMs ?? 0));
    if (isStream && timeouts.firstTokenMs !== undefined) {
      this.#content = setTimeout(() => this.#giveUp(), timeouts.firstTokenMs);
    }
    this.#stopListening = call.onLeave(() => this.#clientLeft());
  }

  /** True if the upstream took a call whose limit explains its silence, and may still work for it. */
  get hasThought(): boolean {
    return this.thinks && this.isOver && this.#exchange?.isRequestSent === true;
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
    const { leftAtMs } = this.call;
    const isTaken = this.#exchange?.isRequestSent === true;
    if (leftAtMs === undefined || this.#drainMs === undefined || !isTaken) return void this.#cancel();
    this.#absence = setTimeout(() => this.#abandon(), leftAtMs + this.#drainMs - performance.now());
    this.call.onCutOff?.(() => this.#cancel());
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
