import { parseJson } from '../../core/base/parse-json';
import { beginAttempt, type MadeAttempt, upstreamRequestId } from '../../core/calls/made-attempt';
import type { Candidate, ModelEntry, Upstream } from '../../core/catalog/catalog';
import { roughPrice } from '../../core/catalog/price';
import type { Protocol, TranslatedCall, UpstreamAdapter } from '../../core/catalog/upstream';
import type { Usage } from '../../core/catalog/usage';
import { findMembers, type MemberPlace } from '../../core/http/json-members';
import { bodyNoteOf, NoteReader } from '../../core/protocols/notes';
import { askUpstream, type UpstreamCall } from '../../core/wire/ask-upstream';
import { readAll } from '../../core/wire/chunk-reader';
import { classifyDialFailure, type Egress } from '../../core/wire/egress';
import { decodedChunks } from '../../core/wire/exchange';
import { isAnswer } from '../../core/wire/read-answer';
import { translateRequest } from '../../core/wire/translated-call';
import type { UpstreamExchange } from '../../core/wire/upstream-exchange';

/** The result of one small test call. */
interface TestResult {
  readonly upstream: string;
  readonly model: string;
  readonly protocol: Protocol;
  readonly ok: boolean;
  /** HTTP status of the answer; null when there was none. */
  readonly status: number | null;
  readonly ms: number;
  /** What failed, for the operator who repairs it; null when the upstream answered. */
  readonly problem: string | null;
}

const PATIENCE_MS = 30_000;
const MAX_ANSWER_BYTES = 256 * 1024;
const MAX_SHOWN = 300;

const WORDS = 'Answer with the word OK.';
const MESSAGES = [{ role: 'user', content: WORDS }];
const QUESTION: Readonly<Record<Protocol, object>> = {
  messages: { max_tokens: 16, messages: MESSAGES },
  chat: { max_completion_tokens: 16, messages: MESSAGES },
  responses: { max_output_tokens: 16, input: WORDS, store: false },
  embeddings: { input: 'OK' },
};

/** The result of a test call, and the attempt for which the vendor may charge. */
interface MadeTest {
  readonly result: TestResult;
  readonly made: MadeAttempt;
}

/** Sends an upstream a small call, like a client's, with the platform's credential. The vendor charges the platform, not an account. */
export async function callUpstream(
  egress: Egress,
  upstream: Upstream,
  model: ModelEntry,
  { adapter, protocol }: Speaking,
): Promise<MadeTest> {
  const asked = question(protocol, model.name);
  const candidate: Candidate = {
    upstream,
    model,
    adapter,
    rough: roughPrice(model.price),
    dialect: adapter.own && 'own',
  };
  const translated = adapter.own === undefined ? undefined : await translateRequest(candidate, asked);
  const answered = await callOnce(egress, candidate, translated?.call ?? asked);
  const { made, status, text } = answered;
  const body = parseJson(text);
  const isFine = status !== null && status < 300 && isAnswer(body);
  if (isFine) noteUsage(made, usageOf(candidate, protocol, translated?.asked, body));
  else if (status !== null) made.outcome = 'status';
  const problem = isFine ? null : problemOf(answered);
  const { ms } = made;
  return {
    made,
    result: { upstream: upstream.name, model: model.name, protocol, ok: isFine, status, ms, problem },
  };
}

/** The adapter and the protocol of a call. */
export interface Speaking {
  readonly adapter: UpstreamAdapter;
  readonly protocol: Protocol;
}

/** The whole answer of an upstream. */
export interface CalledOnce {
  readonly made: MadeAttempt & { ms: number };
  /** HTTP status; null when the upstream did not answer, and `text` then says why. */
  readonly status: number | null;
  /** The body without the credential, because some upstreams repeat the key in their errors. */
  readonly text: string;
}

/** Makes one call to an upstream and reads its answer to the end. */
export async function callOnce(
  egress: Egress,
  asked: { readonly upstream: Upstream; readonly model: ModelEntry; readonly adapter: UpstreamAdapter },
  call: UpstreamCall,
): Promise<CalledOnce> {
  const { upstream } = asked;
  const made = Object.assign(beginAttempt(asked, 'test'), { ms: 0 });
  const startedMs = performance.now();
  let exchange: UpstreamExchange | undefined;
  const patience = setTimeout(
    () => exchange?.cancel(new Error(`no answer within ${PATIENCE_MS / 1_000} s`)),
    PATIENCE_MS,
  );
  try {
    exchange = await askUpstream(asked, call, egress.pool(upstream));
    const head = await exchange.head;
    const text = (await readAll(decodedChunks(exchange, head), MAX_ANSWER_BYTES)).toString('utf8');
    made.upstreamRequestId = upstreamRequestId(head.headers);
    made.status = head.status;
    made.outcome = head.status < 300 ? 'answered' : 'status';
    return { made, status: head.status, text: without(upstream.credential.value, text) };
  } catch (error) {
    made.outcome = classifyDialFailure(error);
    return { made, status: null, text: `${made.outcome}: ${error instanceof Error ? error.message : String(error)}` };
  } finally {
    made.ms = Math.round(performance.now() - startedMs);
    clearTimeout(patience);
    exchange?.cancel();
  }
}

function usageOf(
  { adapter, upstream }: Candidate,
  protocol: Protocol,
  asked: TranslatedCall | undefined,
  body: unknown,
): Usage {
  if (adapter.own === undefined || asked === undefined)
    return new NoteReader(protocol, upstream.adapterSettings).body(body).usage;
  return bodyNoteOf(adapter.own.answer(asked).body(body), body).usage;
}

/** Describes a failed call for the operator who repairs the upstream. */
export function problemOf({ status, text }: CalledOnce): string {
  return status === null ? text : `the upstream answered ${status}: ${text.slice(0, MAX_SHOWN)}`;
}

/** Records in the attempt the usage for which the upstream charges. */
export function noteUsage(made: MadeAttempt, usage: Usage): void {
  made.usage = usage;
  made.isReported = usage.passes.length > 0;
}

/** Removes the credential from an answer, because the answer is written into the audit log. */
function without(credential: string | undefined, text: string): string {
  return credential === undefined || credential === '' ? text : text.replaceAll(credential, '[credential]');
}

/** Returns a small request in the form in which a client would have sent it. */
export function question(protocol: Protocol, model: string, stream = false): UpstreamCall {
  const bytes = Buffer.from(JSON.stringify({ model, ...QUESTION[protocol], ...(stream && { stream }) }));
  const places = findMembers([bytes]) ?? new Map<string, MemberPlace>();
  return {
    protocol,
    stream,
    query: '',
    headers: { 'content-type': 'application/json', accept: stream ? 'text/event-stream' : 'application/json' },
    members: new Map([...places].map(([name, { valueStart, end }]) => [name, bytes.toString('utf8', valueStart, end)])),
    body: { chunks: [bytes], byteLength: bytes.length, members: places },
  };
}
