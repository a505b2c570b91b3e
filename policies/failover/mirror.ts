import type { Answer, Call, Mirror, ModelRequest } from '../../core/calls/call';
import { type AttemptTrace, beginAttempt, type MadeAttempt, recordedAttempt } from '../../core/calls/made-attempt';
import { type Candidate, entryOf } from '../../core/catalog/catalog';
import { chargeOf } from '../../core/catalog/price';
import { askedWith } from '../../core/catalog/upstream';
import { mergeUsage, UNKNOWN_USAGE, type Usage } from '../../core/catalog/usage';
import type { Gateway } from '../../core/gateway/gateway';
import { chooseCredential } from '../../core/health/credentials';
import type { KeySettings } from '../../core/ledger/ledger';
import { insertAttempts } from '../../core/ledger/outbox/rows';
import type { SeenCall } from '../../core/rollouts/live-rollouts';
import type { TraceHeaders } from '../../core/traces/tracing';
import { bytesOf } from '../../core/wire/chunk-reader';
import { type Attempted, attempt, noteMade, translate } from './attempt';

/** How long a mirrored call may last, in milliseconds. The gateway cancels a longer one and counts it as failed. */
const MAX_MIRROR_MS = 120_000;

/**
 * Sends a copy of a call that has ended to the treatment upstream of a rollout, reads the answer and drops it. Only the rollout gets its
 * times and cost. It runs in the background. The gateway skips it when too many mirrored calls are under way.
 */
export function sendMirror(mirror: Mirror, call: MirroredCall, gateway: Gateway, preambleHoldMs: number): void {
  const { request } = call;
  if (gateway.isStopping()) return;
  const caller = new DetachedCaller();
  const ended = gateway.rollouts.beginMirror(() => caller.leave(), request.body.byteLength);
  if (ended === undefined) return;
  const timer = setTimeout(() => caller.leave(), MAX_MIRROR_MS);
  const { upstream } = mirror.candidate;
  const credential = chooseCredential(upstream, gateway.health, { session: undefined });
  const candidate = { ...mirror.candidate, upstream: askedWith(upstream, credential) };
  const priceOf = gateway.catalog.customerPrices.priceOf(call.key.settings.markup);
  const making = beginAttempt(candidate, 'mirror', priceOf(candidate.model));
  const trace = call.trace?.begin(making, 0);
  caller.traceHeaders = call.traceHeaders;
  void measure(candidate, request, gateway, caller, trace, preambleHoldMs, making)
    .catch(() => FAILED)
    .finally(() => {
      trace?.end();
      record(making, call, gateway);
    })
    .then((measured) => {
      clearTimeout(timer);
      ended();
      // A mirrored call that the gateway cancels because the process stops is no failure.
      if (caller.hasLeft && gateway.isStopping()) return;
      const { name, run, stage, isDrawn } = mirror.part;
      const { accountId } = call.key;
      gateway.rollouts.note({ name, run, stage, isDrawn, accountId, group: 'shadow', isHurt: false, ...measured });
    });
}

type MirroredCall = {
  readonly id: string;
  readonly key: { readonly accountId: string; readonly settings: Pick<KeySettings, 'markup'> };
  readonly request: ModelRequest;
} & Pick<Call, 'trace' | 'traceHeaders'>;

/** Records the attempt of a mirrored call, best effort: no customer pays for it, and no call waits for its row. */
function record(making: MadeAttempt, { id, key }: MirroredCall, { database, log }: Gateway): void {
  // The gateway skipped the upstream, so there is no attempt to record.
  if (making.outcome === 'not_translatable') return;
  const row = { requestId: id, accountId: key.accountId, made: [recordedAttempt(making, 0)] };
  insertAttempts(database, [row]).catch((error: unknown) =>
    log.warn(
      { requestId: id, reason: String(error) },
      'the attempt of a mirrored call could not be written to Postgres',
    ),
  );
}

type Measured = Pick<SeenCall, 'isError' | 'costE8' | 'firstTokenMs' | 'wholeMs'>;

const FAILED: Measured = { isError: true, costE8: 0n, firstTokenMs: undefined, wholeMs: undefined };

async function measure(
  candidate: Candidate,
  request: ModelRequest,
  { egress }: Gateway,
  caller: DetachedCaller,
  trace: AttemptTrace | undefined,
  preambleHoldMs: number,
  making: MadeAttempt,
): Promise<Measured> {
  const startedMs = performance.now();
  const translated = await translate(candidate, request);
  const attempted = await new Promise<Attempted>((resolve) =>
    attempt(candidate, request, caller, { egress, trace, preambleHoldMs, translated }, resolve),
  );
  noteMade(making, attempted, Math.round(performance.now() - startedMs));
  if (!('answer' in attempted)) {
    attempted.relay?.chunks.cancel();
    return FAILED;
  }
  const { answer } = attempted;
  const tookMs = Math.round(performance.now() - startedMs);
  const firstTokenMs = answer.kind === 'stream' ? tookMs : undefined;
  const wholeMs = answer.kind === 'body' ? tookMs : undefined;
  if ('chunks' in answer) caller.onLeave(() => answer.chunks.cancel());
  const usage = await usageOf(answer);
  making.usage = usage;
  making.isReported = usage !== undefined && usage.passes.length > 0;
  if (usage === undefined) return FAILED;
  const costE8 = isCounted(usage, candidate, request)
    ? chargeOf(usage, (pass) => entryOf(candidate, pass).price).costE8
    : 0n;
  return { isError: false, costE8, firstTokenMs, wholeMs };
}

/** Returns the usage of a complete answer; undefined if there is no answer or it is incomplete. */
async function usageOf(answer: Answer): Promise<Usage | undefined> {
  if (answer.kind === 'body') return answer.usage;
  if (answer.kind !== 'stream') {
    if (answer.kind === 'relay') answer.chunks.cancel();
    return undefined;
  }
  const { head, events, chunks } = answer;
  let usage = UNKNOWN_USAGE;
  const read = (notes: typeof head): void => {
    for (const { note } of notes) if (note.usage !== undefined) usage = mergeUsage(usage, note.usage);
  };
  read(head);
  for await (const chunk of bytesOf(chunks)) read(events.read(chunk));
  return events.isWhole ? usage : undefined;
}

/** Returns whether the reported usage is possible. An upstream may report anything, so counts above what its model can read and write are ignored. */
function isCounted(usage: Usage, { model }: Candidate, { choices, inputs = 1 }: ModelRequest): boolean {
  const most = (model.context * inputs + model.maxOutput) * choices;
  return usage.passes.every(({ counts }) =>
    [...counts.values()].every((each = 0) => Number.isSafeInteger(each) && each >= 0 && each <= most),
  );
}

/** The caller of a mirrored call. No client waits for the answer; when the gateway gives up, this caller counts as having left. */
class DetachedCaller {
  hasLeft = false;
  traceHeaders: TraceHeaders | undefined;
  readonly #listeners = new Set<() => void>();

  onLeave(listener: () => void): () => void {
    if (this.hasLeft) listener();
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  leave(): void {
    this.hasLeft = true;
    for (const listener of this.#listeners) listener();
  }
}
