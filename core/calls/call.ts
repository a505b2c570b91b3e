import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CallKey } from '../accounts/identify';
import type { Candidate } from '../catalog/catalog';
import { type Protocol, protocolOf } from '../catalog/protocols';
import type { EventNote } from '../catalog/upstream';
import type { Usage } from '../catalog/usage';
import type { SharedObject } from '../dialects/dialect';
import type { Reading } from '../dialects/reading';
import { fail, type GatewayError } from '../errors';
import type { AskedFor } from '../health/model-use';
import { ClientLeft } from '../http/client-left';
import { newRequestId } from '../http/http';
import type { Intent } from '../ledger/ledger';
import { log } from '../log';
import type { RolloutPart } from '../rollouts/live-rollouts';
import { describeFault } from '../thrown';
import type { TraceHeaders } from '../traces/tracing';
import type { UpstreamCall } from '../wire/ask-upstream';
import type { ChunkReader } from '../wire/chunk-reader';
import type { AttemptOutcome } from '../wire/dial-failure';
import type { EventReader, NotedEvent } from '../wire/event-reader';
import { upstreamSocketOf } from '../wire/inner-connection';
import type { UpstreamSocket } from '../wire/upstream-socket';
import type { KeptObject } from './kept-objects';
import type { MadeAttempt } from './made-attempt';
import type { NewIds } from './new-ids';
import type { CallTrace } from './trace';

/** model-request: what is asked; reserve-settle may lower its limit. */
export interface ModelRequest extends UpstreamCall, AskedFor {
  /** Headers whose names begin so are forwarded both ways. */
  readonly forwardHeaderPrefixes: readonly string[];
  /** The model as the client named it. */
  readonly modelRequested: string;
  /** The most output tokens per choice the client allows, if it says. */
  readonly maxOutputTokens: number | undefined;
  /** What the vendor reads for it. */
  readonly reading: Reading;
  /** How many inputs an embeddings call has, each of up to the context window; undefined for any other call. */
  readonly inputs?: number | undefined;
  /** Where the objects are that the call names; undefined where it names none. */
  readonly kept?: KeptPlace | undefined;
  /**
   * The body, parsed; undefined where it is larger than 1 MiB, for to parse it would hold up every other call. It is parsed
   * once; what is changed in it reaches nobody.
   */
  read(): unknown;
  /** The kinds of objects that its answer may make; undefined where it makes none. */
  readonly makes?: readonly SharedObject[] | undefined;
}

/** The one place where an object can be used that a vendor keeps. */
export interface KeptPlace extends Pick<KeptObject, 'upstream' | 'credential'> {
  /** The member that names it. */
  readonly param: string;
}

/** How the money of a call ends; docs/contract.md, section 6. */
export type Ending =
  | (Counted & { readonly billing: 'actual' | 'estimated' | 'partial'; readonly candidate: Candidate })
  | { readonly billing: 'released' };

/** What is charged for. */
export interface Counted {
  /** In all. */
  readonly usage: Usage;
  /** Counted by us and not reported: never charged above the hold. */
  readonly isEstimate: boolean;
  /** By who answered which part of it, when several did; input stands in one of them. */
  readonly parts?: readonly UsagePart[];
}

export interface UsagePart {
  readonly candidate: Candidate;
  readonly usage: Usage;
}

export interface Settlement {
  /** What the caller has been charged, or will be when the ledger was too slow to say. */
  readonly chargedE8: bigint;
  readonly billing: Ending['billing'];
}

/** reserve-settle: the promise that covers the call. */
export interface Reservation {
  readonly rid: string;
  /** What becomes of a stream whose client leaves: what was relayed is charged, or the upstream is read to its end. */
  readonly onClientAbort: 'settle' | 'drain';
  /** An upstream is sent the request: from now on the call may produce output. */
  asked(): void;
  /** The first ending counts; later ones get the first one's settlement. Answers within 250 ms. */
  settle(ending: Ending): Promise<Settlement>;
}

/** token-metering: what the attempt under way has used so far. */
export interface Meter {
  /** Forgets everything: another candidate is asked. */
  begin(candidate: Candidate): void;
  /** Another candidate goes on from what was relayed, which stays counted. */
  goOn(candidate: Candidate): void;
  note(event: EventNote): void;
  noteBody(usage: Usage, contentBytes: number): void;
  /** The counts to charge: as reported, or estimated from what was relayed when they are unusable. */
  read(): Counted & { readonly billing: 'actual' | 'estimated' };
  /**
   * The counts of an answer that was broken off: what is known of the input, and the output read so far. `hiddenTokens` are
   * output tokens that the upstream probably made and did not show.
   */
  readPartial(hiddenTokens?: number): Counted;
  /**
   * What the attempt under way has used at its upstream, whoever pays for it: what was reported, and estimates of what was not.
   * undefined when nothing has come of it.
   */
  attempted(): { readonly usage: Usage; readonly isReported: boolean } | undefined;
}

/** One try at one candidate. */
export interface Attempt {
  readonly upstream: string;
  readonly outcome: AttemptOutcome;
  readonly status: number | undefined;
  readonly ms: number;
}

/** How a try ended and what was made of it. */
export interface AttemptEnd extends Omit<Attempt, 'outcome'> {
  readonly outcome: AttemptOutcome | 'answered';
  /** In words: what was done then and for which reason; undefined for an answer. */
  readonly why: string | undefined;
}

/** Why a call went where it went: metadata only, kept in the usage record. */
export interface RoutingFacts {
  /** strategy-routing: the choice, best first, as far as it is worth telling; scores as docs/routing.md explains them. */
  candidates: readonly { readonly upstream: string; readonly score: number }[];
  /** How many candidates there were in all. */
  of: number;
  /** failover: every attempt, in order. */
  readonly attempts: AttemptEnd[];
  /** strategy-routing: all of it, for a caller who asks and may know. */
  explained: RoutingExplanation | undefined;
  /** How often the client's SDK has retried before, by its own count; undefined where it has not, or does not say. */
  clientRetry: number | undefined;
  /** reserve-settle: of a call with an Idempotency-Key. A late settle and a recovery read it from the record. */
  intent: Intent | undefined;
}

/** What a caller with a key that may debug is shown of the choice. */
export interface RoutingExplanation {
  readonly strategy: string;
  /** The hash of its session decided between equals. */
  readonly affinity: boolean;
  readonly model: string;
  /** Best first. */
  readonly candidates: readonly {
    readonly upstream: string;
    readonly model: string;
    readonly score: number;
    readonly latencyMs: number | undefined;
    readonly failureRate: number;
    readonly note: string | undefined;
  }[];
  /** Who could serve the model and was not asked, and why. */
  readonly leftOut: readonly { readonly upstream: string; readonly why: string }[];
}

/** failover: the upstream's answer; its first content has been seen, nothing has been sent. */
export type Answer = {
  readonly candidate: Candidate;
  readonly status: number;
  readonly headers: UpstreamHeaders;
} & (
  | {
      readonly kind: 'stream';
      /** The held-back preamble and the first content. Emptied when it is given: a stream may last long. */
      readonly head: NotedEvent[];
      readonly events: EventReader;
      readonly chunks: ChunkReader;
      /** Milliseconds between the head of the answer and its first content, or until the wait for it ended; without stalls of the process. */
      readonly silentMs: number;
      /** Asks somebody else to go on when this breaks off; undefined when nobody could. */
      readonly goOn: GoOn | undefined;
    }
  /** In one piece, with what was read out of it. */
  | { readonly kind: 'body'; readonly bytes: Buffer; readonly usage: Usage; readonly contentBytes: number }
  /** Given to the caller as it is, at no charge: an upstream's error, a redirect. */
  | { readonly kind: 'relay'; readonly head: readonly Buffer[]; readonly chunks: ChunkReader }
  /** The client left after the upstream took the request, and no answer came in time: the input is charged. */
  | { readonly kind: 'abandoned' }
);

export type StreamAnswer = Answer & { readonly kind: 'stream' };

/** Resolves with a stream whose content follows on what was said, or undefined when there is none. */
export type GoOn = (broken: BrokenStream) => Promise<StreamAnswer | undefined>;

export interface BrokenStream {
  readonly outcome: AttemptOutcome;
  /** What the caller was given, as text. */
  readonly said: string;
  readonly outputTokens: number;
}

export type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The fields policies leave for each other; each has the one policy that writes it. A package adds its own:
 * `declare module 'tollgate/policy' { interface CallFields { tenant: Tenant } }`.
 */
export interface CallFields {
  key: CallKey;
  request: ModelRequest;
  candidates: readonly Candidate[];
  reservation: Reservation;
  meter: Meter;
  answer: Answer;
}

/** The name of a field that policies leave for each other. */
export type CallField = keyof CallFields;

/** What every call has of its own: no field that a package adds may take its place. */
const OWN_MEMBERS: Readonly<Record<Exclude<keyof Call, CallField>, true>> = {
  id: true,
  createdAt: true,
  startedMs: true,
  protocol: true,
  method: true,
  path: true,
  facts: true,
  declared: true,
  mirror: true,
  upstreamSocket: true,
  newIds: true,
  trace: true,
  traceId: true,
  traceHeaders: true,
  hasLeft: true,
  left: true,
  leftAtMs: true,
  cutOff: true,
  cutOffBy: true,
  isCutOff: true,
  isOutOfMoney: true,
  onCutOff: true,
  onLeave: true,
  onRefusal: true,
  refusal: true,
  onEnd: true,
  end: true,
  beginStep: true,
  endStep: true,
};

/** Whether a policy may leave a field of this name for the next. */
export function mayBeField(name: string): boolean {
  return !Object.hasOwn(OWN_MEMBERS, name) && !(name in Object.prototype);
}

/** What the policies of a pipeline declare to earlier steps, by their settings. */
export interface Declared {
  /** failover: when a stream breaks, another upstream may continue it. */
  readonly mayBeContinued?: boolean;
}

/** What the usage record says beside tokens and money; written as it becomes known. */
export interface CallFacts {
  strategy: string | undefined;
  attempts: number;
  upstream: string | undefined;
  model: string | undefined;
  fallback: boolean;
  status: number;
  source: 'provider' | 'platform';
  errorCode: string | undefined;
  firstTokenMs: number | undefined;
  /** Of an unstreamed answer, until all of it was there. */
  wholeMs: number | undefined;
  /** How long the call has waited for others: for the client's body, and for upstreams to begin their answers. */
  waitedMs: number;
  /** What else its time was until the head of an upstream's answer was written: the gateway's own. */
  addedMs: number | undefined;
  readonly routing: RoutingFacts;
  /** failover: every request to an upstream, in order, as vendors charge for them. */
  readonly made: MadeAttempt[];
  /** Set once the ledger has taken the call on: from then on settling writes the record. */
  reservationId: string | undefined;
  /** model-request: the session and the agent that it belongs to, as they are recorded. */
  sessionId: string | undefined;
  agentId: string | undefined;
  /** reserve-settle: how it was charged, and for what; undefined where there was no reservation. */
  billing: Ending['billing'] | undefined;
  usage: Usage | undefined;
  /** What was charged for it. */
  costE8: bigint;
  /** What it was charged for; undefined where nothing was charged. */
  charged: Usage | undefined;
  /** What that costs at the upstream's prices: for comparing upstreams, whoever pays what. */
  upstreamCostE8: bigint;
  /** null: it was looked at, and the call is in none. */
  rollout: RolloutPart | null | undefined;
}

/** Who is sent the call too when it has ended, without answering it. */
export interface Mirror {
  readonly candidate: Candidate;
  readonly part: RolloutPart;
}

/** One client request through a pipeline. */
export class Call implements Partial<CallFields> {
  readonly id = newRequestId();
  /** RFC 3339 with milliseconds, UTC. */
  readonly createdAt = new Date().toISOString();
  /** Monotonic, for durations. */
  readonly startedMs = performance.now();
  readonly protocol: Protocol;
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  readonly facts: CallFacts = {
    strategy: undefined,
    attempts: 0,
    upstream: undefined,
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
  meter?: Meter;
  answer?: Answer;

  /** strategy-routing: what failover is to do beside answering. */
  mirror: Mirror | undefined;

  /** The upstream's side of the client's WebSocket; undefined where the call did not come over one. */
  readonly upstreamSocket: UpstreamSocket | undefined;

  /** Finds the ids that the answer makes; undefined where it makes none. */
  newIds?: NewIds | undefined;

  /** What is traced of it; undefined where it is not sampled. */
  trace: CallTrace | undefined;

  /** Its place in a trace, for upstreams; undefined where nothing is traced. */
  traceHeaders: TraceHeaders | undefined;

  #leaving: AbortController | undefined;
  readonly #whenLeft = new Set<() => void>();
  #whenCutOff: (() => void)[] | undefined;
  #hasLeft = false;
  #leftAtMs: number | undefined;
  #cutOffBy: GatewayError | undefined;
  readonly #refusalHooks: RefusalHook[] = [];
  readonly #endings: EndingWork[] = [];
  #ended: Promise<void> | undefined;
  #isInStep = false;
  #isClosed = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    readonly declared: Declared = {},
  ) {
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

  /** For logs and exemplars; undefined where it is not sampled. */
  get traceId(): string | undefined {
    return this.trace?.traceId;
  }

  /** A step that is under way sees its client leave and decides itself how the call ends; only then the endings run. */
  beginStep(): void {
    this.#isInStep = true;
  }

  /** `goesOn`: another step follows at once, and ends the call if it is the last. */
  endStep(goesOn = false): void {
    this.#isInStep = false;
    if (this.#isClosed && !goesOn) void this.end();
  }

  /** The client has left before its answer was complete, or the call is cut off. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** What ended the call before its answer was complete; the client may still be there, and is told so. */
  get cutOffBy(): GatewayError | undefined {
    return this.#cutOffBy;
  }

  /** The process ends before the call does. */
  get isCutOff(): boolean {
    return this.#cutOffBy?.code === 'DRAINING';
  }

  /** Nothing more could be held for it: what it has used until then is charged. */
  get isOutOfMoney(): boolean {
    return this.#cutOffBy !== undefined && !this.isCutOff;
  }

  /**
   * When the client disconnected, on the clock of `performance.now()`; undefined while it is connected. It stays undefined
   * where the call was cut off before.
   */
  get leftAtMs(): number | undefined {
    return this.#leftAtMs;
  }

  /** Ends a call: all that runs for it stops, also what is read on for a client that has left. The first reason counts. */
  cutOff(by: GatewayError = fail('DRAINING', { retryAfterSeconds: 1 })): void {
    if (this.#cutOffBy !== undefined) return;
    this.#cutOffBy = by;
    if (!this.#hasLeft) this.#leave();
    for (const listener of this.#whenCutOff ?? []) listener();
    this.#whenCutOff = undefined;
  }

  /** Calls back when the call is cut off, whether or not its client has left. */
  onCutOff(listener: () => void): void {
    if (this.#cutOffBy !== undefined) return void listener();
    this.#whenCutOff ??= [];
    this.#whenCutOff.push(listener);
  }

  /** Calls back when the client leaves, at once if it has; returns how to stop that. Cheaper than a signal. */
  onLeave(listener: () => void): () => void {
    if (this.#hasLeft) listener();
    else this.#whenLeft.add(listener);
    return () => this.#whenLeft.delete(listener);
  }

  /** The same as a signal, made when first asked for. */
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
    for (const listener of this.#whenLeft) listener();
    this.#whenLeft.clear();
  }

  /** Has a look at an error before the caller is told of it; may put another in its place. Last added, first asked. */
  onRefusal(hook: RefusalHook): void {
    this.#refusalHooks.push(hook);
  }

  async refusal(error: GatewayError): Promise<GatewayError> {
    let shown = error;
    for (const hook of this.#refusalHooks.reverse()) shown = await hook(shown);
    return shown;
  }

  /** Work that must be done however the call ends. Last added, first done; once. After the end it is done at once. */
  onEnd(work: EndingWork): void {
    if (this.#ended === undefined) this.#endings.push(work);
    else void this.#finish([work]);
  }

  /** Never rejects. */
  end(): Promise<void> {
    this.#ended ??= this.#finish(this.#endings.reverse());
    return this.#ended;
  }

  /** One ending that fails keeps none of the others from being done. */
  async #finish(endings: readonly EndingWork[]): Promise<void> {
    for (const work of endings) {
      try {
        await work();
      } catch (error) {
        log.error({ error: describeFault(error), requestId: this.id }, 'a handler for the end of a call failed');
      }
    }
  }
}

type EndingWork = () => unknown;

/** The official SDKs count their retries in a header; 0 in a first attempt. */
function clientRetryOf({ headers }: IncomingMessage): number | undefined {
  const count = headers['x-stainless-retry-count'];
  return typeof count === 'string' && /^[1-9]\d{0,3}$/.test(count) ? Number(count) : undefined;
}

export type RefusalHook = (error: GatewayError) => Promise<GatewayError>;
