import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConcurrencyLimits } from '../accounts/concurrent-calls';
import type { CallKey } from '../accounts/identify';
import { fail, type GatewayError } from '../base/errors';
import { log } from '../base/log';
import type { MaybeLater } from '../base/maybe-later';
import { safeErrorFields } from '../base/safe-error';
import type { Candidate } from '../catalog/catalog';
import { type Protocol, protocolOf } from '../catalog/protocols';
import type { EventNote } from '../catalog/upstream';
import type { Usage } from '../catalog/usage';
import type { AskedFor } from '../health/model-use';
import type { AnswerRoom } from '../http/buffered-bytes';
import { ClientLeft } from '../http/client-left';
import { newRequestId } from '../http/http';
import type { Intent } from '../ledger/ledger';
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
import type { VendorResource } from './vendor-resources';

/** The field of model-request: the call as the upstream gets it. reserve-settle may lower its limit. */
export interface ModelRequest extends UpstreamCall, AskedFor {
  /** The prefixes of headers that are forwarded in both directions. */
  readonly forwardHeaderPrefixes: readonly string[];
  /** The model's name in the request. */
  readonly modelRequested: string;
  /** The most output tokens per choice that the client allows; undefined: it names no limit. */
  readonly maxOutputTokens: number | undefined;
  /** The content that the vendor reads for this call. */
  readonly reading: CostFactors;
  /** Whether the operator refuses tools and members without a price for this call, whatever the upstream. */
  readonly refusesUnpriced?: boolean;
  /** The number of inputs of an embeddings call, each up to the context window; undefined for other calls. */
  readonly inputs?: number | undefined;
  /** Where the objects that the call names are; undefined if it names none. */
  readonly kept?: PinnedPlace | undefined;
  /**
   * Returns the parsed body; undefined if it is larger than 1 MiB, because parsing it would delay all other calls. The body is
   * parsed once. A change to the result reaches no upstream.
   */
  read(): unknown;
  /** The kinds of objects that the answer may create; undefined if it creates none. */
  readonly makes?: readonly SharedObject[] | undefined;
}

/** The only place where an object that a vendor keeps can be used. */
export interface PinnedPlace extends Pick<VendorResource, 'upstream' | 'credential'> {
  /** The member that names it. */
  readonly param: string;
}

/** The ways in which the money of a call ends; docs/contract.md, section 6. */
export type Ending =
  | (Counted & { readonly billing: 'actual' | 'estimated' | 'partial'; readonly candidate: Candidate })
  | { readonly billing: 'released' };

/** The usage that is charged. */
export interface Counted {
  readonly usage: Usage;
  /** Whether the gateway counted the usage because the upstream did not report it. An estimate is never charged above the hold. */
  readonly isEstimate: boolean;
}

export interface Settlement {
  /** The amount that the customer pays. If the ledger was too slow to confirm it, it will be charged later. */
  readonly chargedE8: bigint;
  readonly billing: Ending['billing'];
}

/** The field of reserve-settle: the hold that covers the call. */
export interface Reservation {
  readonly rid: string;
  /** The treatment of a stream whose client leaves: charge what was relayed, or read the upstream to its end. */
  readonly onClientAbort: 'settle' | 'drain';
  /** Settles the call, at once or within 250 ms. The first ending counts; later ones get its settlement. */
  settle(ending: Ending): MaybeLater<Settlement>;
}

/** The field of token-metering: the usage of the attempt under way. */
export interface UsageCounter {
  /** Forgets all counts, because another candidate is tried. */
  begin(candidate: Candidate): void;
  note(event: EventNote): void;
  noteBody(usage: Usage, contentBytes: number): void;
  /** Returns the counts to charge: as reported, or estimated from the relayed text if the reports are unusable. */
  read(): Counted & { readonly billing: 'actual' | 'estimated' };
  /** Returns the counts of an answer that broke off: the known input, and the output so far, or `atLeastTokens` if that is more. */
  readPartial(atLeastTokens?: number): Counted;
  /**
   * Returns the usage of the attempt under way at its upstream, whether or not the customer pays for it. It has reported counts,
   * and estimates for missing ones; undefined if the attempt has no usage.
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

/** The result of an attempt and the decision that followed. */
interface AttemptEnd extends Omit<Attempt, 'outcome'> {
  readonly outcome: AttemptOutcome | 'answered';
  /** The gateway's decision in words, and its reason; undefined for an answer. */
  readonly why: string | undefined;
}

/** Why a call took its route. This is metadata only, kept in the usage record. */
export interface RoutingFacts {
  /** strategy-routing: the first candidates of the ranking, best first. docs/routing.md explains the scores. */
  candidates: readonly { readonly upstream: string; readonly score: number }[];
  /** The number of all candidates. */
  of: number;
  /** failover: every attempt, in order. */
  readonly attempts: AttemptEnd[];
  /** strategy-routing: the whole ranking, for a client that asks and whose key may debug. */
  explained: RoutingExplanation | undefined;
  /** How often the client's SDK says it has retried; undefined for a first attempt or if the SDK does not say. */
  clientRetry: number | undefined;
  /** reserve-settle: the intent of a call with an Idempotency-Key. A late settle and a recovery read it from the record. */
  intent: Intent | undefined;
}

/** The explanation of a ranking, for clients whose keys may debug. */
export interface RoutingExplanation {
  readonly strategy: string;
  /** Whether the hash of the session decided between equals. */
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

/** The field of failover: the upstream's answer. Its first content has come, and the client has got nothing yet. */
export type Answer = {
  readonly candidate: Candidate;
  readonly status: number;
  readonly headers: UpstreamHeaders;
} & (
  | {
      readonly kind: 'stream';
      /** The held preamble and the first content. The list is emptied when they are sent, because a stream may last long. */
      readonly head: NotedEvent[];
      readonly events: EventReader;
      readonly chunks: ChunkReader;
      /** When the head of the answer came, on the clock of `performance.now()`. */
      readonly headAtMs: number;
    }
  /** An unstreamed answer, with the facts read from it. It has no bytes if the client has left or there was no room for them. */
  | { readonly kind: 'body'; readonly bytes: Buffer | undefined; readonly usage: Usage; readonly contentBytes: number }
  /** An error or a redirect of the upstream, which the client gets unchanged and free of charge. */
  | { readonly kind: 'relay'; readonly head: readonly Buffer[]; readonly chunks: ChunkReader }
  /** The client left after the upstream took the request, and no answer came in time. `sentAtMs` is on the same clock. */
  | { readonly kind: 'abandoned'; readonly sentAtMs: number }
);

export type StreamAnswer = Answer & { readonly kind: 'stream' };

export type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The fields that policies leave for later policies; one policy writes each. A package adds its own: `declare module
 * 'tollgate/policy' { interface CallFields { tenant: Tenant } }`.
 */
export interface CallFields {
  key: CallKey;
  request: ModelRequest;
  candidates: readonly Candidate[];
  reservation: Reservation;
  meter: UsageCounter;
  answer: Answer;
}

/** The name of a field that one policy leaves for later ones. */
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

/** True if a policy may leave a field of this name. */
export function mayBeField(name: string): boolean {
  return !Object.hasOwn(OWN_MEMBERS, name) && !(name in Object.prototype);
}

/** The facts that the policies of a pipeline declare to earlier steps and to our own API, by their settings. */
export interface Declared {
  /** key-auth: how many calls and other requests a key and an account may have under way. */
  readonly concurrentCalls?: ConcurrencyLimits;
}

/** The facts of the usage record beside tokens and money. Each is written as it becomes known. */
export interface CallFacts {
  strategy: string | undefined;
  attempts: number;
  upstream: string | undefined;
  /** What a translated request promises less of than the client asked for, in the client's words. */
  weakened: readonly string[];
  model: string | undefined;
  fallback: boolean;
  status: number;
  source: 'provider' | 'platform';
  errorCode: string | undefined;
  firstTokenMs: number | undefined;
  /** How long an unstreamed answer took until all of it was there. */
  wholeMs: number | undefined;
  /** How long the call has waited for the client's body and for upstreams to begin their answers. */
  waitedMs: number;
  /** The time that the gateway itself took until it wrote the head of an upstream's answer: all but `waitedMs`. */
  addedMs: number | undefined;
  readonly routing: RoutingFacts;
  /** failover: every request to an upstream, in order, because vendors charge for each. */
  readonly made: MadeAttempt[];
  /** Set once the ledger has accepted the reservation. From then on settling writes the record. */
  reservationId: string | undefined;
  /** model-request: the session and the agent of the call, as they are recorded. */
  sessionId: string | undefined;
  agentId: string | undefined;
  /** reserve-settle: how the call was charged; undefined if there was no reservation. */
  billing: Ending['billing'] | undefined;
  usage: Usage | undefined;
  /** The amount charged for the call. */
  costE8: bigint;
  /** The usage that was charged; undefined if nothing was charged. */
  charged: Usage | undefined;
  /** The cost at the upstream's prices. It serves to compare upstreams, whatever the customer pays. */
  upstreamCostE8: bigint;
  /** null: the rollouts were checked, and the call is in none. */
  rollout: RolloutPart | null | undefined;
}

/** The candidate that also gets the call after its end. The client never sees its answer. */
export interface Mirror {
  readonly candidate: Candidate;
  readonly part: RolloutPart;
}

/** One client request through a pipeline. */
export class Call implements Partial<CallFields> {
  readonly id = newRequestId();
  /** When the call began, in RFC 3339 with milliseconds, UTC. */
  readonly createdAt = new Date().toISOString();
  /** When the call began on a monotonic clock, for durations. */
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

  /** The call's place among the open calls. */
  place = -1;

  /** strategy-routing: the candidate that failover sends the call to after its end. */
  mirror: Mirror | undefined;

  /** The upstream side of the client's WebSocket; undefined if the call did not come over one. */
  readonly upstreamSocket: UpstreamSocket | undefined;

  /** Finds the ids of objects that the answer creates; undefined if it creates none. */
  newIds?: NewIds | undefined;

  /** failover: the room of the answer's bytes while they wait for the client. */
  room: AnswerRoom | undefined;

  /** The trace of the call; undefined if it is not sampled. */
  trace: CallTrace | undefined;

  /** The headers that tell upstreams the trace; undefined if nothing is traced. */
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

  /** Notes that a step runs. While it runs, the step itself handles a client that leaves; the endings run afterwards. */
  beginStep(): void {
    this.#isInStep = true;
  }

  /** Notes that a step has ended. `continues`: another step follows at once, and the last one ends the call. */
  endStep(continues = false): void {
    this.#isInStep = false;
    if (this.#isClosed && !continues) void this.end();
  }

  /** True if the client left before its answer was complete, or if the call was cut off. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** The error that cut the call off before its answer was complete. A client that is still there gets this error. */
  get cutOffBy(): GatewayError | undefined {
    return this.#cutOffBy;
  }

  /** True if the process stopped before the call ended. */
  get isCutOff(): boolean {
    return this.#cutOffBy !== undefined;
  }

  /** When the client disconnected, on the clock of `performance.now()`; undefined while it is connected, or if the call was cut off before. */
  get leftAtMs(): number | undefined {
    return this.#leftAtMs;
  }

  /** Cuts a call off: everything that runs for it stops, even the reading for a client that has left. */
  cutOff(): void {
    if (this.#cutOffBy !== undefined) return;
    this.#cutOffBy = fail('DRAINING', { retryAfterSeconds: 1 });
    if (!this.#hasLeft) this.#leave();
    for (const listener of this.#whenCutOff ?? []) listener();
    this.#whenCutOff = undefined;
  }

  /** Calls the listener when the call is cut off, whether or not its client has left. */
  onCutOff(listener: () => void): void {
    if (this.#cutOffBy !== undefined) return void listener();
    this.#whenCutOff ??= [];
    this.#whenCutOff.push(listener);
  }

  /** Calls the listener when the client leaves, or at once if it has left. Returns what removes the listener. Cheaper than a signal. */
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

  /** A signal that aborts when the client leaves. It is made at the first use. */
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

  /** Adds a hook that sees an error before the client does and may replace it. The hooks run in reverse order. */
  onRefusal(hook: RefusalHook): void {
    this.#refusalHooks.push(hook);
  }

  async refusal(error: GatewayError): Promise<GatewayError> {
    let shown = error;
    for (const hook of this.#refusalHooks.reverse()) shown = await hook(shown);
    return shown;
  }

  /** Adds work that runs once, however the call ends. Works run in reverse order. After the end, new work runs at once. */
  onEnd(work: EndingWork): void {
    if (this.#hasEnded) void this.#finish([work], 1);
    else this.#endings.push(work);
  }

  /** Runs the work at the end of the call. Never throws or rejects. */
  end(): MaybeLater<void> {
    if (!this.#hasEnded) {
      this.#hasEnded = true;
      this.#ending = this.#finish(this.#endings, this.#endings.length);
    }
    return this.#ending;
  }

  /** Runs the first `left` of the endings, the last one first, even if one of them fails. */
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

/** Returns the SDK's count of retries from its header. The official SDKs send 0 in a first attempt. */
function clientRetryOf({ headers }: IncomingMessage): number | undefined {
  const count = headers['x-stainless-retry-count'];
  return typeof count === 'string' && /^[1-9]\d{0,3}$/.test(count) ? Number(count) : undefined;
}

type RefusalHook = (error: GatewayError) => Promise<GatewayError>;
