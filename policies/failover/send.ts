import { askUpstream } from '../../core/ask-upstream';
import type { Call, ModelRequest } from '../../core/call';
import type { Candidate, Upstream } from '../../core/catalog';
import { classifyDialFailure, type Egress, wasReusedConnection } from '../../core/egress';
import type { Exchange, ExchangeHead } from '../../core/exchange';

interface Answering extends ExchangeHead {
  readonly exchange: Exchange;
}

/** Asks a candidate; resolves when the head of its answer is there. */
export async function send(
  candidate: Candidate,
  request: ModelRequest,
  egress: Egress,
  patience: Patience,
): Promise<Answering> {
  const { upstream } = candidate;
  for (let isFresh = false; ; isFresh = true) {
    try {
      const dispatcher = isFresh ? egress.fresh(upstream) : egress.pool(upstream);
      const exchange = askUpstream(candidate, request, dispatcher, isFresh);
      patience.watch(exchange);
      const { status, headers } = await exchange.head;
      patience.headArrived();
      return { exchange, status, headers };
    } catch (error) {
      // The upstream closed an idle connection at the very moment it was used again, and never saw the request.
      const isFree = wasReusedConnection(error) && classifyDialFailure(error) === 'reset' && !patience.hasEnded;
      if (isFresh || !isFree) throw error;
    }
  }
}

/** Connecting and waiting for the head of the answer together take at most this long; spec section 8. */
const LONGEST_WAIT_FOR_HEAD_MS = 120_000;

/** Ends an attempt when the client leaves, when the head does not come in time, or the first content of a stream. */
export class Patience {
  readonly #head: NodeJS.Timeout;
  readonly #content: NodeJS.Timeout | undefined;
  readonly #stopListening: () => void;
  #exchange: Exchange | undefined;
  /** The upstream was silent for too long. */
  isOver = false;
  hasEnded = false;

  constructor({ timeouts }: Upstream, isStream: boolean, call: Pick<Call, 'onLeave'>) {
    const overMs = Math.min(timeouts.connectMs + timeouts.headersMs, LONGEST_WAIT_FOR_HEAD_MS);
    this.#head = setTimeout(() => this.#giveUp(), overMs);
    if (isStream && timeouts.firstTokenMs !== undefined) {
      this.#content = setTimeout(() => this.#giveUp(), timeouts.firstTokenMs);
    }
    this.#stopListening = call.onLeave(() => this.#end());
  }

  watch(exchange: Exchange): void {
    this.#exchange = exchange;
    if (this.hasEnded) exchange.cancel();
  }

  headArrived(): void {
    clearTimeout(this.#head);
  }

  /** The attempt has come to something: from here on others watch. */
  stop(): void {
    clearTimeout(this.#head);
    clearTimeout(this.#content);
    this.#stopListening();
  }

  #giveUp(): void {
    this.isOver = true;
    this.#end();
  }

  #end(): void {
    this.hasEnded = true;
    this.#exchange?.cancel();
  }
}
