import { createHash, hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { rateLimited } from '../../core/accounts/identify';
import { missingMoney, refusedTags } from '../../core/accounts/missing-money';
import { ERRORS, fail, type GatewayError } from '../../core/base/errors';
import { andThen, type MaybeLater } from '../../core/base/maybe-later';
import { formatUsd } from '../../core/base/money';
import type { StoredAnswer } from '../../core/calls/answer-store';
import type { CallFields, ModelRequest } from '../../core/calls/call';
import { askedFor, pricedCandidates } from '../../core/calls/candidates';
import { missingTag } from '../../core/calls/tags';
import { factsOfHold, recordAfterHold } from '../../core/calls/usage-record';
import { type Candidate, isAllowed } from '../../core/catalog/catalog';
import type { CustomerCandidates } from '../../core/catalog/customer-prices';
import type { Gateway } from '../../core/gateway/gateway';
import type { CallWith } from '../../core/gateway/policy';
import { ClientLeft } from '../../core/http/client-left';
import { hostOf, isDirectHost } from '../../core/http/request-head';
import { type Intent, type KeySettings, MAX_INTENTS, type Payer, type ReserveOutcome } from '../../core/ledger/ledger';
import { measuredReserve } from '../../core/ledger/ledger-metrics';
import { accountFrozen } from '../../core/ledger/unavailable';
import { clampTo, holdFor, minHold, tokensFor, withLimit } from './hold';

/** A call while its money is reserved and settled. Later steps set its answer and its meter, which settling the call needs. */
export type PayingCall = CallWith<'key' | 'request' | 'candidates'> & Partial<Pick<CallFields, 'answer' | 'meter'>>;

interface ReserveSettings {
  readonly onInsufficient: 'reject' | 'clamp';
  readonly withoutLimit: 'hold' | 'insert';
}

/** The call as upstreams receive it, and the hold that covers the call at the customer's prices. */
export interface Covered extends CustomerCandidates<Candidate> {
  readonly request: ModelRequest;
  readonly heldE8: bigint;
  /** The facts about the call at the time of its hold: see `factsOfHold`. */
  readonly facts: string;
}

/** The result if a call repeats an earlier one whose answer is stored. */
interface Repeated {
  readonly stored: StoredAnswer;
}

/**
 * Reserves the money for a call.
 * @throws if the key does not allow the call, the money does not cover it, or the client already made the call
 */
export function reserve(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  settings: ReserveSettings,
): MaybeLater<Covered | Repeated> {
  return andThen(assertTagged(gateway, call), () => reserveTagged(gateway, call, rid, settings));
}

/** Checks that the call has the tags that its key requires. Reads the key's settings again before it refuses, because newer ones may require none. */
function assertTagged({ keys }: Gateway, { key, request: { tags } }: PayingCall): MaybeLater<void> {
  if (missingTag(key.settings.requiredTags, tags) === undefined) return undefined;
  return keys.confirm(key).then(({ settings }) => {
    const refused = missingTag(settings.requiredTags, tags);
    if (refused !== undefined) throw refused;
  });
}

function reserveTagged(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  settings: ReserveSettings,
): MaybeLater<Covered | Repeated> {
  return andThen(askWithFreshSettings(gateway, call, rid, settings), (asked) => {
    const first = openHere(gateway, call, asked);
    if (first === undefined) return coveredBy(gateway, asked);
    return endOf(first, call).then(() => reserveTagged(gateway, call, rid, settings));
  });
}

function coveredBy(gateway: Gateway, { outcome, wanted, facts }: ReserveResult): Covered | Repeated {
  const stored = outcome.outcome === 'intent_charged' ? gateway.answers?.find(outcome.rid) : undefined;
  if (stored !== undefined) return { stored };
  if (outcome.outcome !== 'reserved') throw refusalOf(outcome, wanted.minE8 ?? wanted.wholeE8);
  const { heldE8 } = outcome;
  const { request, candidates, priceOf } = wanted;
  const isWhole = heldE8 === wanted.wholeE8;
  return {
    request: isWhole ? request : clampTo(heldE8, request, candidates),
    candidates,
    priceOf,
    heldE8,
    facts,
  };
}

/** Returns a promise of the end of the first call if that call runs in this process; otherwise undefined. A repeated stream does not wait. */
function openHere(
  { answers }: Gateway,
  { request }: PayingCall,
  { outcome }: ReserveResult,
): Promise<void> | undefined {
  return request.stream || !('rid' in outcome) ? undefined : answers?.whenEnded(outcome.rid);
}

/** Waits until the first call, which `call` repeats, has settled. @throws ClientLeft */
function endOf(first: Promise<void>, call: PayingCall): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopListening = call.onLeave(() => reject(new ClientLeft()));
    void first.then(() => {
      stopListening();
      resolve();
    });
  });
}

/**
 * Returns the call's candidates with the customer's prices.
 * @throws MODEL_NOT_PRICED if the customer has no price for something that the call requests
 */
function atPricesOf({ catalog }: Gateway, call: PayingCall, { markup }: KeySettings): CustomerCandidates<Candidate> {
  const atPrices = catalog.customerPrices.candidates(call.candidates, markup);
  if (markup !== undefined && pricedCandidates(atPrices.candidates, call.request).length < call.candidates.length)
    throw fail('MODEL_NOT_PRICED', {
      message: 'The price list of this key lacks a price for what the call requests. Ask the operator of the gateway.',
    });
  return atPrices;
}

/** The holds that a call requests: the whole hold, and the smallest hold if the gateway may lower the call's output limit. */
interface HoldRequest extends CustomerCandidates<Candidate> {
  readonly request: ModelRequest;
  readonly wholeE8: bigint;
  readonly minE8: bigint | undefined;
}

interface ReserveResult {
  readonly outcome: ReserveOutcome;
  readonly wanted: HoldRequest;
  readonly facts: string;
}

/** Reserves at the ledger, and repeats this once if the key's settings have changed since this process read them. */
function askWithFreshSettings(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  settings: ReserveSettings,
): MaybeLater<ReserveResult> {
  return andThen(ask(gateway, call, rid, settings, call.key.settings), (asked) => {
    if (asked.outcome.outcome !== 'stale_key') return asked;
    return ask(gateway, call, rid, settings, learn(gateway, call, asked.outcome.settings));
  });
}

function wantedFor(
  gateway: Gateway,
  call: PayingCall,
  { onInsufficient, withoutLimit }: ReserveSettings,
  settings: KeySettings,
): HoldRequest {
  const request = withoutLimit === 'insert' ? withLimit(call.request, call.candidates) : call.request;
  const { candidates, priceOf } = atPricesOf(gateway, call, settings);
  const wholeE8 = holdFor(request, candidates);
  const minE8 = onInsufficient === 'clamp' ? minHold(request, candidates) : undefined;
  return { request, candidates, priceOf, wholeE8, minE8 };
}

/** Caches the newer settings of a key in this process, routes the call by them, and returns them. Throws if they do not allow the call. */
function learn(gateway: Gateway, call: PayingCall, settings: KeySettings): KeySettings {
  Object.assign(call, { key: gateway.keys.remember(call.key, settings) });
  if (!isAllowed(gateway.catalog, askedFor(gateway, call), settings.allowedModels))
    throw fail('MODEL_NOT_ALLOWED', { param: 'model' });
  const untagged = missingTag(settings.requiredTags, call.request.tags);
  if (untagged !== undefined) throw untagged;
  call.reroute?.(settings);
  return settings;
}

function ask(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  settings: ReserveSettings,
  keySettings: KeySettings,
): MaybeLater<ReserveResult> {
  const wanted = wantedFor(gateway, call, settings, keySettings);
  const { accountId, keyId } = call.key;
  const { intent } = call.facts.routing;
  const facts = factsOfHold(call, gateway.configRevision, keySettings);
  const request = {
    rid,
    accountId,
    keyId,
    keyRev: keySettings.rev,
    amountE8: wanted.wholeE8,
    minE8: wanted.minE8,
    lifetimeMs: gateway.leases.leaseMs,
    facts,
    tokens: tokensFor(wanted.request, call.candidates),
    intent: intent && { ...intent, requestId: call.id },
    tags: call.request.tags,
  };
  let outcome: MaybeLater<ReserveOutcome>;
  try {
    outcome = measuredReserve(gateway.calls, request);
  } catch (error) {
    return releaseUnanswered(gateway, call, request, error);
  }
  if (!(outcome instanceof Promise)) return { outcome, wanted, facts };
  return outcome.then(
    (answered) => ({ outcome: answered, wanted, facts }),
    (error: unknown) => releaseUnanswered(gateway, call, request, error),
  );
}

/**
 * Releases a reserve that the ledger did not answer. The ledger may have accepted it or may still do so. The release returns the money or
 * makes the ledger refuse the reserve.
 * @throws the reason why there was no answer
 */
function releaseUnanswered(
  gateway: Gateway,
  call: PayingCall,
  { rid, accountId, keyId, facts }: Payer & { readonly rid: string; readonly facts: string },
  error: unknown,
): never {
  call.facts.status = ERRORS.LEDGER_UNAVAILABLE.status;
  call.facts.errorCode = 'LEDGER_UNAVAILABLE';
  const record = recordAfterHold(facts, call, { billing: 'released' });
  void gateway.settler.release({ rid, accountId, keyId, record });
  throw error;
}

const IDEMPOTENCY_HEADER = 'idempotency-key';

const MAX_CHARACTERS = 160;

/**
 * Returns the intent of a call: its Idempotency-Key, with which it may run only once; undefined without a key.
 * @throws IDEMPOTENCY_KEY_INVALID
 */
export function intentOf(call: PayingCall, message: IncomingMessage): Intent | undefined {
  const value = message.headers[IDEMPOTENCY_HEADER];
  if (value === undefined) return undefined;
  const isOnce = message.headersDistinct[IDEMPOTENCY_HEADER]?.length === 1;
  if (typeof value !== 'string' || !isOnce || value === '' || value.length > MAX_CHARACTERS) throw invalid();
  return { key: hash('sha256', value, 'base64url'), body: hashOfCall(call, message) };
}

function invalid(): GatewayError {
  const message = `Idempotency-Key: expected one header of 1 to ${MAX_CHARACTERS} characters`;
  return fail('IDEMPOTENCY_KEY_INVALID', { param: IDEMPOTENCY_HEADER, message });
}

/** Returns the hash of the body's bytes, the address and the client's demands. The host counts only for a direct route, because a gateway may have several hosts. */
function hashOfCall({ protocol, path, request }: PayingCall, message: IncomingMessage): string {
  const host = hostOf(message);
  const digest = createHash('sha256');
  const demands = request.demands === undefined ? '' : ` ${request.demands.text}`;
  digest.update(`${protocol} ${isDirectHost(host) ? host : ''} ${path} ${request.query}${demands}\n`);
  for (const chunk of request.body.chunks) digest.update(chunk);
  return digest.digest('base64url');
}

/** After how many seconds a client may repeat a call while the first call still runs. SDKs retry twice. */
const ASK_AGAIN_SECONDS = 5;

type Refused = Exclude<ReserveOutcome, { outcome: 'reserved' }>;

/** Returns the error for a refused hold. `requiredE8` is the smallest hold that the ledger would have accepted, in E8 (1e-8 USD). */
function refusalOf(outcome: Refused, requiredE8: bigint): GatewayError {
  switch (outcome.outcome) {
    case 'unknown_key':
    case 'revoked':
    case 'unknown_account':
      return fail('INVALID_API_KEY');
    case 'frozen':
      return accountFrozen();
    case 'insufficient_balance':
    case 'limit_exceeded':
      return missingMoney(outcome, requiredE8);
    case 'too_many_limited_tags':
    case 'too_many_tags':
      return refusedTags(outcome.outcome);
    case 'intent_conflict':
      return fail('IDEMPOTENCY_CONFLICT', {
        param: IDEMPOTENCY_HEADER,
        message: 'This Idempotency-Key was already used with another body or address. Use a new key for a new request.',
        details: { requestId: outcome.requestId },
      });
    case 'intent_open':
      return fail('IDEMPOTENCY_KEY_IN_USE', {
        details: { requestId: outcome.requestId },
        retryAfterSeconds: ASK_AGAIN_SECONDS,
      });
    case 'intent_charged':
      return fail('ALREADY_CHARGED', {
        details: { requestId: outcome.requestId, costUsd: formatUsd(outcome.chargedE8) },
      });
    case 'too_many_intents':
      return fail('CONCURRENCY_LIMIT', {
        message: 'The account has too many running calls with an Idempotency-Key. Retry later.',
        details: { of: 'idempotency keys', limit: MAX_INTENTS },
        retryAfterSeconds: ASK_AGAIN_SECONDS,
      });
    case 'rate_limited':
      return rateLimited(outcome.retryAfterMs);
    case 'not_ready':
    case 'stale_key':
      return fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 1 });
    default:
      return fail('INTERNAL_ERROR', {
        cause: new Error(`the ledger answered a new reservation with ${outcome.outcome}`),
      });
  }
}
