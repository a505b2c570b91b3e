import type { MaybeLater } from '../../core/base/maybe-later';
import type { Call, CallFields } from '../../core/calls/call';
import { drainMs } from '../../core/calls/unfinished';
import type { Candidate, Upstream } from '../../core/catalog/catalog';
import { askUpstream, type UpstreamCall } from '../../core/wire/ask-upstream';
import { classifyDialFailure, type Egress, wasReusedConnection } from '../../core/wire/egress';
import type { ExchangeHead, UpstreamExchange } from '../../core/wire/upstream-exchange';
import type { UpstreamSocket } from '../../core/wire/upstream-socket';

/** The call of an attempt. A mirrored call has no key: no customer pays for it, and its attempt ends as soon as the gateway cancels it. */
export type AttemptingCall = Pick<Call, 'onLeave'> &
  Partial<
    Pick<Call, 'id' | 'leftAtMs' | 'newIds' | 'onCutOff' | 'room' | 'traceHeaders' | 'upstreamSocket'> &
      Pick<CallFields, 'key' | 'request' | 'reservation'>
  >;

/** The request of one attempt, its candidate, the connections it may use, and its deadlines. */
interface Sending {
  readonly candidate: Candidate;
  readonly asked: UpstreamCall;
  readonly egress: Egress;
  readonly patience: AttemptDeadlines;
  readonly socket: UpstreamSocket | undefined;
}

/**
 * Sends the call to a candidate.
 * @param answered receives the head of the answer (status and headers)
 * @param failed receives the error if no head came
 */
export function send(
  sending: Sending,
  answered: (exchange: UpstreamExchange, head: ExchangeHead) => void,
  failed: (error: unknown) => void,
  isFresh = false,
): void {
  const { patience } = sending;
  const broken = (error: unknown): void => {
    // The upstream closed an idle connection just when the gateway reused that connection. The upstream never saw the request, so a second request is
    // safe.
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

/** How long connecting and the head of the answer may take together, in milliseconds; docs/contract.md, section 10. */
const MAX_HEAD_WAIT_MS = 120_000;

/**
 * Ends an attempt if the head, or the first content of a stream, does not arrive in time. If the client disconnects, the attempt ends at
 * once. If the upstream has already received the whole request, the attempt ends after `drainMs` instead.
 */
export class AttemptDeadlines {
  /** Whether the call's output limit justifies a longer silence than the upstream's timeouts allow. */
  readonly thinks: boolean;
  readonly #head: NodeJS.Timeout;
  readonly #content: NodeJS.Timeout | undefined;
  readonly #stopListening: () => void;
  readonly #drainMs: number | undefined;
  #absence: NodeJS.Timeout | undefined;
  #exchange: UpstreamExchange | undefined;
  /** Whether the attempt ended because the upstream was silent for too long. */
  isOver = false;
  /** Whether the attempt was cancelled because the client disconnected or the gateway cut the call off. */
  isCancelled = false;
  /** Whether the client disconnected after the upstream received the request, and the time limit `drainMs` for reading the rest has ended. */
  isAbandoned = false;
  #hasEnded = false;

  /**
   * Starts the timers.
   * @param thinkingMs the timeout of an unstreamed call whose output limit justifies more than the upstream's timeouts; otherwise undefined
   */
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

  /** Whether the attempt timed out after the long silence that the call's output limit justifies, so that the upstream may still work. */
  get hasThought(): boolean {
    return this.thinks && this.isOver && this.#exchange?.isRequestSent === true;
  }

  /** Whether the client still waits, so that a request that failed on a reused connection may be sent again. */
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

  /** Stops the timers, because the attempt has a result. Later steps watch the rest of the answer. */
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
