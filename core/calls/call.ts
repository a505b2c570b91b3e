import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConcurrencyLimits } from '../accounts/concurrent-calls';
import type { CallKey } from '../accounts/identify';
import { fail, type GatewayError } from '../base/errors';
import { log } from '../base/log';
import type { MaybeLater } from '../base/maybe-later';
import { safeErrorFields } from '../base/safe-error';
import type { Candidate } from '../catalog/catalog';
import type { Demands, Exclusion } from '../catalog/demands';
import { type Protocol, protocolOf } from '../catalog/protocols';
import type { EventNote } from '../catalog/upstream';
import type { Usage } from '../catalog/usage';
import type { AskedFor } from '../health/model-use';
import type { AnswerRoom } from '../http/buffered-bytes';
import { ClientLeft } from '../http/client-left';
import { newRequestId } from '../http/http';
import type { Intent, KeySettings } from '../ledger/ledger';
import type { CostFactors } from '../protocols/cost-factors';
import type { SharedObject } from '../protocols/request-table';
import type { RolloutPart } from '../rollouts/live-rollouts';
import type { TraceHeaders } from '../traces/tracing';
import type { UpstreamCall } from '../wire/ask-upstream';
import type { ChunkReader } from '../wire/chunk-reader';
import type { AttemptOutcome } from '../wire/dial-failure';
import type { EventReader, NotedEvent } from '../wire/event-reader';
import { upstreamSocketOf } from '../wire/inner-connection';
import type { UpstreamSocket } from '../wire/upstream-socket';
import type { CallTrace, MadeAttempt } from './made-attempt';
import type { NewIds } from './new-ids';
import type { CallTags } from './tags';
import type { VendorResource } from './vendor-resources';

/** The call as the upstream gets it; the policy model-request writes this call field. The policy reserve-settle may lower the output limit in it. */
export interface ModelRequest extends UpstreamCall, AskedFor {
  /** The prefixes of the names of headers that the gateway forwards in both directions. */
  readonly forwardHeaderPrefixes: readonly string[];
  /** The model's name as the client wrote it in the request. */
  readonly modelRequested: string;
  /** The most output tokens per choice that the client allows; undefined if the client sets no limit. */
  readonly maxOutputTokens: number | undefined;
  /** Counts of what the vendor reads for this call. The gateway computes the hold (the money reserved for the call) from them. */
  readonly reading: CostFactors;
  /** Whether the operator refuses calls whose tools or request members have no price, whatever the upstream. */
  readonly refusesUnpriced?: boolean;
  /** The number of inputs of an embeddings call, each up to the context window; undefined for other calls. */
  readonly inputs?: number | undefined;
  /** The end user whom the body names, in the form of records; undefined if it names none. */
  readonly endUser?: string | undefined;
  /** All tags of the call for the ledger (`ReserveRequest.tags`); undefined without tags. */
  readonly tags?: string | undefined;
  /** The upstream and credential of the vendor objects that the call names; undefined if it names none. */
  readonly kept?: PinnedPlace | undefined;
  /** What the client demands of the upstreams that may serve the call; undefined for nothing. */
  readonly demands?: Demands | undefined;
  /** The first member that may make the vendor keep content, fetch some or pass it on; undefined if none does. */
  readonly leaves?: string | undefined;
  /**
   * Returns the parsed body; undefined if it is larger than 1 MiB, because parsing it would delay all other calls. The body is parsed once.
   * Changes to the returned value do not change the request to the upstream.
   */
  read(): unknown;
  /** The kinds of vendor objects that the answer may create; undefined if it creates none. */
  readonly makes?: readonly SharedObject[] | undefined;
}

/** The only upstream and credential with which a call can use an object that a vendor stores. */
export interface PinnedPlace extends Pick<VendorResource, 'upstream' | 'credential'> {
  /** The member of the request that names the vendor's object. */
  readonly param: string;
}

/** How a call is charged at its end, or that its hold is released; docs/contract.md, section 6. */
export type Ending =
  | (Counted & { readonly billing: 'actual' | 'estimated' | 'partial'; readonly candidate: Candidate })
  | { readonly billing: 'released' };

/** The usage that is charged, and how certain it is. */
export interface Counted {
  readonly usage: Usage;
  /** Whether the gateway counted the usage because the upstream did not report it. An estimate is never charged above the hold. */
  readonly isEstimate: boolean;
}

export interface Settlement {
  /** The amount that the customer pays. If the ledger does not confirm it in time, the customer is charged later. */
  readonly chargedE8: bigint;
  readonly billing: Ending['billing'];
}

/** The hold that covers the call; the policy reserve-settle writes this call field. */
export interface Reservation {
  readonly rid: string;
  /** What to do with a stream whose client disconnects: `settle` charges what the upstream has probably produced, `drain` reads the stream to its end. */
  readonly onClientAbort: 'settle' | 'drain';
  /** Settles the call, at once or within 250 ms. Only the first `ending` counts; later calls of this function return its settlement. */
  settle(ending: Ending): MaybeLater<Settlement>;
}

/** The usage of the running attempt; the policy token-metering writes this call field. */
export interface UsageCounter {
  /** Discards all counts, because failover tries another candidate. */
  begin(candidate: Candidate): void;
  note(event: EventNote): void;
  noteBody(usage: Usage, contentBytes: number): void;
  /** Returns the counts to charge: the reported ones, or estimates from the relayed text if the reports are unusable. */
  read(): Counted & { readonly billing: 'actual' | 'estimated' };
  /** Returns the counts of an incomplete answer: the known input, and the output so far, or `atLeastTokens` if that is more. */
  readPartial(atLeastTokens?: number): Counted;
  /**
   * Returns the usage of the running attempt at its upstream, even if the customer does not pay for it. It has reported counts, and
   * estimates for missing ones; undefined if the attempt has no usage.
   */
  attempted(): { readonly usage: Usage; readonly isReported: boolean } | undefined;
}

/** One attempt at one candidate. */
export interface Attempt {
  readonly upstream: string;
  readonly outcome: AttemptOutcome;
  readonly status: number | undefined;
  readonly ms: number;
}

/** The result of an attempt, and the gateway's decision after it. */
interface AttemptEnd extends Omit<Attempt, 'outcome'> {
  readonly outcome: AttemptOutcome | 'answered';
  /** What the gateway decided after the attempt and why, in words; undefined if the upstream answered. */
  readonly why: string | undefined;
}

/** Why the gateway chose the upstreams of a call. These facts are metadata and part of the usage record. */
export interface RoutingFacts {
  /** The first candidates of the ranking, best first. The policy strategy-routing sets them; docs/routing.md explains the scores. */
  candidates: readonly { readonly upstream: string; readonly score: number }[];
  /** The number of all candidates in the ranking. */
  of: number;
  /** Every attempt, in order. The policy failover adds them. */
  readonly attempts: AttemptEnd[];
  /** The whole ranking. The policy strategy-routing sets it; undefined unless the client requests it and its key may debug. */
  explained: RoutingExplanation | undefined;
  /** The upstreams that the demands of a refused call exclude, all of the model's; undefined for any other call. */
  excluded?: readonly ExcludedUpstream[] | undefined;
  /** How often the client's SDK says it has retried; undefined for a first attempt or if the SDK does not say. */
  clientRetry: number | undefined;
  /** The intent of a call (its Idempotency-Key). The policy reserve-settle sets it. A late settlement and a recovery read it from the usage record. */
  intent: Intent | undefined;
}

/** An upstream that may not serve a call, and the demand that it does not meet. */
export interface ExcludedUpstream extends Exclusion {
  readonly upstream: string;
}

/** The explanation of a ranking, for clients whose keys may debug. */
export interface RoutingExplanation {
  readonly strategy: string;
  /** Whether the session's hash decided between candidates of equal score. */
  readonly affinity: boolean;
  readonly model: string;
  /** The candidates, best first. */
  readonly candidates: readonly {
    readonly upstream: string;
    readonly model: string;
    readonly score: number;
    readonly latencyMs: number | undefined;
    readonly failureRate: number;
    readonly note: string | undefined;
  }[];
  /** The upstreams that serve the model but were not tried, and why. */
  readonly leftOut: readonly { readonly upstream: string; readonly why: string }[];
}

/** The upstream's answer; the policy failover writes this call field. The gateway has read the first content, but has sent nothing to the client yet. */
export type Answer = {
  readonly candidate: Candidate;
  readonly status: number;
  readonly headers: UpstreamHeaders;
} & (
  | {
      readonly kind: 'stream';
      /** The events up to the first content, which the gateway holds back. It empties this list after sending, to free the memory during a long stream. */
      readonly head: NotedEvent[];
      readonly events: EventReader;
      readonly chunks: ChunkReader;
      /** When the gateway received the head of the answer, on the clock of `performance.now()`. */
      readonly headAtMs: number;
    }
  /** An unstreamed answer, with the facts read from it. `bytes` is undefined if the client disconnected or the process had no room to buffer them. */
  | { readonly kind: 'body'; readonly bytes: Buffer | undefined; readonly usage: Usage; readonly contentBytes: number }
  /** An error or redirect of the upstream. The gateway relays it unchanged and does not charge for it. */
  | { readonly kind: 'relay'; readonly head: readonly Buffer[]; readonly chunks: ChunkReader }
  /** The client disconnected after the upstream accepted the request, and no answer came in time. `sentAtMs` is on the clock of `performance.now()`. */
  | { readonly kind: 'abandoned'; readonly sentAtMs: number }
);

export type StreamAnswer = Answer & { readonly kind: 'stream' };

export type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The fields of a call that policies write for later policies. Each field has one policy that writes it. A package adds its own: `declare
 * module 'tollgate/policy' { interface CallFields { tenant: Tenant } }`.
 */
export interface CallFields {
  key: CallKey;
  request: ModelRequest;
  candidates: readonly Candidate[];
  reservation: Reservation;
  meter: UsageCounter;
  answer: Answer;
}

/** The name of a field of a call that one policy writes for later policies. */
export type CallField = keyof CallFields;

/** The members that every call has. A package must not add a field with one of these names. */
const OWN_MEMBERS: Readonly<Record<Exclude<keyof Call, CallField>, true>> = {
  id: true,
  createdAt: true,
  startedMs: true,
  protocol: true,
  method: true,
  path: true,
  facts: true,
  place: true,
  mirror: true,
  reroute: true,
  upstreamSocket: true,
  newIds: true,
  room: true,
  trace: true,
  traceId: true,
  traceHeaders: true,
  hasLeft: true,
  left: true,
  leftAtMs: true,
  cutOff: true,
  cutOffBy: true,
  isCutOff: true,
  onCutOff: true,
  onLeave: true,
  onRefusal: true,
  refusal: true,
  onEnd: true,
  end: true,
  beginStep: true,
  endStep: true,
};

/** Returns whether a policy may write a field of this name; no member of `Call` may have it. */
export function mayBeField(name: string): boolean {
  return !Object.hasOwn(OWN_MEMBERS, name) && !(name in Object.prototype);
}

/** What the policies of a pipeline announce to earlier steps and to the gateway's own API, according to their settings. */
export interface Declared {
  /** How many calls and other requests of a key and of an account may run at once. The policy key-auth announces it. */
  readonly concurrentCalls?: ConcurrencyLimits;
  /** Whether the policy strategy-routing also sends calls to upstreams that speak another protocol than the client. */
  readonly translates?: true;
}

/** The facts of the usage record except tokens and money. Policies write each fact as soon as they know it. */
export interface CallFacts {
  strategy: string | undefined;
  attempts: number;
  upstream: string | undefined;
  /**
   * The features of the request for which a translated request gives a weaker guarantee than the client requested. Each has its name in the
   * client's protocol.
   */
  weakened: readonly string[];
  model: string | undefined;
  /** What the call demanded of upstreams; undefined for nothing. The policy model-request sets it, and routing again with newer settings of the key. */
  demands: Demands | undefined;
  /** The region that is declared of the upstream that answered; undefined while none has. */
  region: string | undefined;
  fallback: boolean;
  status: number;
  source: 'provider' | 'platform';
  errorCode: string | undefined;
  firstTokenMs: number | undefined;
  /** How long an unstreamed answer took until it was complete, in ms; undefined for a stream. */
  wholeMs: number | undefined;
  /** How many milliseconds the call has waited for the client's body and for upstreams to begin their answers. */
  waitedMs: number;
  /** How many milliseconds the gateway itself took until it wrote the head of an upstream's answer: the whole time without `waitedMs`. */
  addedMs: number | undefined;
  readonly routing: RoutingFacts;
  /** Every request to an upstream, in order, from the policy failover. Each request is recorded, because vendors charge for each. */
  readonly made: MadeAttempt[];
  /** The id of the hold; set once the ledger has accepted the hold. From then on, the settlement writes the usage record. */
  reservationId: string | undefined;
  /**
   * The ids of the session and the agent (`SessionIds.recorded`), the end user and the caller's own tags (core/calls/tags.ts), as the usage
   * record stores them. The policy model-request sets them.
   */
  sessionId: string | undefined;
  agentId: string | undefined;
  endUserId: string | undefined;
  tags: CallTags | undefined;
  /** How the call was charged. The policy reserve-settle sets it; undefined if there was no reservation. */
  billing: Ending['billing'] | undefined;
  usage: Usage | undefined;
  /** The amount that the customer is charged for the call, in 1e-8 USD. */
  costE8: bigint;
  /** The usage that was charged; undefined if nothing was charged. */
  charged: Usage | undefined;
  /** The cost at the upstream's prices, in 1e-8 USD. It serves to compare upstreams and does not depend on the customer's prices. */
  upstreamCostE8: bigint;
  /** The rollout that includes the call, and the call's group in it; null if there is none; undefined if the rollouts were not checked. */
  rollout: RolloutPart | null | undefined;
}

/** The candidate to which a rollout sends a copy of the call after its end. The client never sees that answer. */
export interface Mirror {
  readonly candidate: Candidate;
  readonly part: RolloutPart;
}

/** One client request through a pipeline. */
export class Call implements Partial<CallFields> {
  readonly id = newRequestId();
  /** When the call began, in RFC 3339 with milliseconds, UTC. */
  readonly createdAt = new Date().toISOString();
  /** When the call began on the monotonic clock of `performance.now()`, for durations. */
  readonly startedMs = performance.now();
  readonly protocol: Protocol;
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly facts: CallFacts = {
    strategy: undefined,
    attempts: 0,
    upstream: undefined,
    weakened: [],
    model: undefined,
    demands: undefined,
    region: undefined,
    fallback: false,
    status: 0,
    source: 'platform',
    errorCode: undefined,
    firstTokenMs: undefined,
    wholeMs: undefined,
    waitedMs: 0,
    addedMs: undefined,
    routing: {
      candidates: [],
      of: 0,
      attempts: [],
      explained: undefined,
      clientRetry: undefined,
      intent: undefined,
    },
    made: [],
    reservationId: undefined,
    sessionId: undefined,
    agentId: undefined,
    endUserId: undefined,
    tags: undefined,
    billing: undefined,
    usage: undefined,
    costE8: 0n,
    charged: undefined,
    upstreamCostE8: 0n,
    rollout: undefined,
  };

  key?: CallKey;
  request?: ModelRequest;
  candidates?: readonly Candidate[];
  reservation?: Reservation;
  meter?: UsageCounter;
  answer?: Answer;

  /** The call's index in the set of open calls; -1 before it is in the set. */
  place = -1;

  /** The candidate to which the policy failover sends a copy of the call after the call has ended. The policy strategy-routing chooses it. */
  mirror: Mirror | undefined;

  /**
   * Chooses the candidates again, because the key's settings turned out to be newer: what it demands, or what it pays. The policy that
   * chose the candidates sets it. @throws NO_CANDIDATE_ALLOWED
   */
  reroute: ((settings: KeySettings) => void) | undefined;

  /** The upstream side of the client's WebSocket; undefined if the client sent the call over HTTP. */
  readonly upstreamSocket: UpstreamSocket | undefined;

  /** Collects the ids of vendor objects that the answer creates; undefined if it creates none. */
  newIds?: NewIds | undefined;

  /** The memory that the policy failover has reserved for bytes of the answer that wait for the client. */
  room: AnswerRoom | undefined;

  /** The trace of the call; undefined if it is not sampled. */
  trace: CallTrace | undefined;

  /** The headers that pass the trace context to upstreams; undefined if there is none. */
  traceHeaders: TraceHeaders | undefined;

  #leaving: AbortController | undefined;
  #whenLeft: (() => void)[] | undefined;
  #whenCutOff: (() => void)[] | undefined;
  #hasLeft = false;
  #leftAtMs: number | undefined;
  #cutOffBy: GatewayError | undefined;
  readonly #refusalHooks: RefusalHook[] = [];
  readonly #endings: EndingWork[] = [];
  #hasEnded = false;
  #ending: MaybeLater<void> = undefined;
  #isInStep = false;
  #isClosed = false;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.method = request.method ?? '';
    const url = request.url ?? '/';
    const query = url.indexOf('?');
    this.path = query === -1 ? url : url.slice(0, query);
    this.protocol = protocolOf(this.path);
    this.facts.routing.clientRetry = clientRetryOf(request);
    this.upstreamSocket = upstreamSocketOf(request);
    response.once('close', () => {
      if (!response.writableFinished) this.#clientLeaves();
      this.#isClosed = true;
      if (!this.#isInStep) void this.end();
    });
  }

  /** The id of the trace, for logs and exemplars; undefined if the call is not sampled. */
  get traceId(): string | undefined {
    return this.trace?.traceId;
  }

  /**
   * Records that a step (a policy's part of the call) runs. If the client disconnects during the step, the step handles that. The
   * end-of-call handlers run after the step.
   */
  beginStep(): void {
    this.#isInStep = true;
  }

  /**
   * Records that a step (a policy's part of the call) has ended. `continues` means that another step follows at once. The call then does
   * not end here, even if the client has disconnected.
   */
  endStep(continues = false): void {
    this.#isInStep = false;
    if (this.#isClosed && !continues) void this.end();
  }

  /** Whether the client disconnected before its answer was complete, or the stopping process cut the call off. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** The error with which the stopping process cut the call off; undefined if it did not. A client that is still connected gets this error. */
  get cutOffBy(): GatewayError | undefined {
    return this.#cutOffBy;
  }

  /** Whether the stopping process cut the call off before its end. */
  get isCutOff(): boolean {
    return this.#cutOffBy !== undefined;
  }

  /** When the client disconnected, on the clock of `performance.now()`; undefined while it is connected, or if the call was cut off before that. */
  get leftAtMs(): number | undefined {
    return this.#leftAtMs;
  }

  /** Cuts the call off: stops all its work, even reading the answer to its end for a client that has disconnected. */
  cutOff(): void {
    if (this.#cutOffBy !== undefined) return;
    this.#cutOffBy = fail('DRAINING', { retryAfterSeconds: 1 });
    if (!this.#hasLeft) this.#leave();
    for (const listener of this.#whenCutOff ?? []) listener();
    this.#whenCutOff = undefined;
  }

  /** Calls the listener when the call is cut off, even if its client has already disconnected. */
  onCutOff(listener: () => void): void {
    if (this.#cutOffBy !== undefined) return void listener();
    this.#whenCutOff ??= [];
    this.#whenCutOff.push(listener);
  }

  /**
   * Calls the listener when the client disconnects, or at once if the client already has. Returns a function that removes the listener.
   * Costs less than the signal `left`.
   */
  onLeave(listener: () => void): () => void {
    if (this.#hasLeft) listener();
    else {
      this.#whenLeft ??= [];
      this.#whenLeft.push(listener);
    }
    return () => {
      const place = this.#whenLeft?.indexOf(listener) ?? -1;
      if (place !== -1) this.#whenLeft?.splice(place, 1);
    };
  }

  /** A signal that aborts when the client disconnects. It is created at its first use. */
  get left(): AbortSignal {
    if (this.#leaving === undefined) {
      const leaving = new AbortController();
      this.#leaving = leaving;
      this.onLeave(() => leaving.abort(new ClientLeft()));
    }
    return this.#leaving.signal;
  }

  #clientLeaves(): void {
    if (this.#hasLeft) return;
    this.#leftAtMs = performance.now();
    this.#leave();
  }

  #leave(): void {
    this.#hasLeft = true;
    for (let listener = this.#whenLeft?.shift(); listener !== undefined; listener = this.#whenLeft?.shift()) listener();
  }

  /** Adds a hook that gets an error before the client does and may replace it. The last hook runs first. */
  onRefusal(hook: RefusalHook): void {
    this.#refusalHooks.push(hook);
  }

  async refusal(error: GatewayError): Promise<GatewayError> {
    let shown = error;
    for (const hook of this.#refusalHooks.reverse()) shown = await hook(shown);
    return shown;
  }

  /** Adds an end-of-call handler, which runs once, however the call ends. The last one added runs first. After the end, a new one runs at once. */
  onEnd(work: EndingWork): void {
    if (this.#hasEnded) void this.#finish([work], 1);
    else this.#endings.push(work);
  }

  /** Runs the end-of-call handlers, at the first call of this function. Never throws or rejects. */
  end(): MaybeLater<void> {
    if (!this.#hasEnded) {
      this.#hasEnded = true;
      this.#ending = this.#finish(this.#endings, this.#endings.length);
    }
    return this.#ending;
  }

  /** Runs the end-of-call handlers with an index below `left`, the last one first. A handler that fails does not stop the others. */
  #finish(endings: readonly EndingWork[], left: number): MaybeLater<void> {
    for (let at = left - 1; at >= 0; at -= 1) {
      try {
        const work = endings[at]?.();
        if (work instanceof Promise)
          return work.catch((error: unknown) => this.#noteFailedEnding(error)).then(() => this.#finish(endings, at));
      } catch (error) {
        this.#noteFailedEnding(error);
      }
    }
  }

  #noteFailedEnding(error: unknown): void {
    log.error({ error: safeErrorFields(error), requestId: this.id }, 'a handler for the end of a call failed');
  }
}

type EndingWork = () => unknown;

/** Returns how often the client's SDK has retried, from its header; undefined for 0, which the official SDKs send at a first attempt. */
function clientRetryOf({ headers }: IncomingMessage): number | undefined {
  const count = headers['x-stainless-retry-count'];
  return typeof count === 'string' && /^[1-9]\d{0,3}$/.test(count) ? Number(count) : undefined;
}

type RefusalHook = (error: GatewayError) => Promise<GatewayError>;
