import type { ModelRequest } from '../../core/calls/call';
import type { Candidate } from '../../core/catalog/catalog';
import { fail, type GatewayError } from '../../core/errors';
import type { Gateway } from '../../core/gateway/gateway';
import type { CallWith } from '../../core/gateway/policy';
import type { RenewOutcome } from '../../core/ledger/ledger';
import { describeFault } from '../../core/thrown';
import { holdFor } from './hold';
import { refusalOf } from './refusal';

/** For how many seconds ahead a hold covers the output of an upstream. */
export const AHEAD_SECONDS = 5;

export const GROWTH_TIMES = {
  everyMs: 2_000,
  retryMs: 500,
  /** For how long the ledger may be unreachable before the stream ends. */
  unansweredAtMostMs: 10_000,
};

/**
 * True if a hold may begin small. Every candidate must have a known top speed and stop when it is cancelled. An unstreamed call
 * could not end with the output so far.
 */
export function mayGrow({ stream }: ModelRequest, candidates: readonly Candidate[]): boolean {
  return (
    stream &&
    candidates.every(({ model, upstream }) => model.maxTokensPerSecond !== undefined && upstream.stopsOnCancel === true)
  );
}

type GrowingCall = Pick<CallWith<'key'>, 'id' | 'key' | 'cutOff'>;

type GrowingGateway = {
  readonly ledger: Pick<Gateway['ledger'], 'renew'>;
  readonly log: Pick<Gateway['log'], 'debug'>;
};

interface Paid {
  readonly rid: string;
  readonly request: ModelRequest;
  /** The candidates at the customer's prices. */
  readonly candidates: readonly Candidate[];
  readonly heldE8: bigint;
}

/** The hold of a stream that grows while the stream runs. If it cannot grow, the call is cut off; the hold covers all output until then. */
export class GrowingHold {
  readonly #gateway: GrowingGateway;
  readonly #call: GrowingCall;
  readonly #paid: Paid;
  readonly #times: typeof GROWTH_TIMES;
  /** The hold for the whole answer. */
  readonly #mostE8: bigint;
  #heldE8: bigint;
  #askedMs = 0;
  #answeredMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #hasStopped = false;

  constructor(gateway: GrowingGateway, call: GrowingCall, paid: Paid, times = GROWTH_TIMES) {
    this.#gateway = gateway;
    this.#call = call;
    this.#paid = paid;
    this.#times = times;
    this.#heldE8 = paid.heldE8;
    this.#mostE8 = this.#holdFor(Number.POSITIVE_INFINITY);
  }

  get heldE8(): bigint {
    return this.#heldE8;
  }

  /** Records that an upstream gets the request: it produces output from now on. */
  asked(): void {
    this.#askedMs = performance.now();
    if (this.#timer === undefined) this.#growIn(this.#times.everyMs);
  }

  stop(): void {
    this.#hasStopped = true;
    clearTimeout(this.#timer);
  }

  #growIn(ms: number): void {
    if (this.#hasStopped || this.#heldE8 >= this.#mostE8) return;
    this.#answeredMs ||= performance.now();
    this.#timer = setTimeout(() => void this.#grow(), ms).unref();
  }

  async #grow(): Promise<void> {
    const seconds = (performance.now() - this.#askedMs) / 1_000;
    const amountE8 = this.#holdFor(seconds + AHEAD_SECONDS);
    const outcome = amountE8 <= this.#heldE8 ? RENEWED : await this.#renew(amountE8);
    if (this.#hasStopped) return;
    if (outcome.outcome === 'renewed') {
      if (amountE8 > this.#heldE8) this.#heldE8 = amountE8;
      this.#answeredMs = performance.now();
      return this.#growIn(this.#times.everyMs);
    }
    if (outcome.outcome === 'not_ready' || outcome.outcome === 'not_open') {
      if (performance.now() - this.#answeredMs < this.#times.unansweredAtMostMs)
        return this.#growIn(this.#times.retryMs);
      return this.#end(fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 1 }));
    }
    this.#end(refusalOf(outcome, amountE8));
  }

  /** Renews the hold with a larger amount. Returns `not_ready` if the ledger cannot be reached. */
  async #renew(amountE8: bigint): Promise<RenewOutcome> {
    const { accountId, keyId } = this.#call.key;
    try {
      return await this.#gateway.ledger.renew({
        accountId,
        keyId,
        rid: this.#paid.rid,
        amountE8,
        lifetimeMs: undefined,
      });
    } catch (error) {
      this.#gateway.log.debug(
        { requestId: this.#call.id, reason: describeFault(error) },
        'the hold of a running stream could not grow; it is retried',
      );
      return { outcome: 'not_ready' };
    }
  }

  #end(error: GatewayError): void {
    this.stop();
    this.#call.cutOff(error);
  }

  #holdFor(seconds: number): bigint {
    const { request, candidates } = this.#paid;
    return holdFor(request, candidates, seconds);
  }
}

const RENEWED: RenewOutcome = { outcome: 'renewed' };
