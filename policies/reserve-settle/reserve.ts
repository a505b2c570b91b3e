import { askedFor } from '../../core/calls/allowed-models';
import type { StoredAnswer } from '../../core/calls/answer-store';
import type { ModelRequest } from '../../core/calls/call';
import { pricedCandidates } from '../../core/calls/priced-candidates';
import { usageRecord } from '../../core/calls/usage-record';
import { type Candidate, isAllowed } from '../../core/catalog/catalog';
import type { CustomerCandidates } from '../../core/catalog/customer-prices';
import { ERRORS, fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway/gateway';
import type { CallWith } from '../../core/gateway/policy';
import { ClientLeft } from '../../core/http/client-left';
import type { KeySettings, ReserveOutcome } from '../../core/ledger/ledger';
import { measuredReserve } from '../../core/ledger/ledger-metrics';
import { clampTo, withLimit } from './clamp';
import { withFewestUses } from './fewest-uses';
import { AHEAD_SECONDS, mayGrow } from './growing-hold';
import { holdFor, tokensFor } from './hold';
import { refusalOf } from './refusal';

export type PayingCall = CallWith<'key' | 'request' | 'candidates'>;

export interface ReserveSettings {
  readonly onInsufficient: 'reject' | 'clamp';
  readonly withoutLimit: 'hold' | 'insert';
}

/** The call as the upstreams get it, and the hold that covers it at the customer's prices. */
export interface Covered extends CustomerCandidates<Candidate> {
  readonly request: ModelRequest;
  readonly heldE8: bigint;
  /** Whether the hold begins small; see `mayGrow`. */
  readonly grows: boolean;
}

/** The result for a repeated call whose answer is stored. */
interface Repeated {
  readonly stored: StoredAnswer;
}

/** How often a reserve is tried. Between two tries other calls may take money, and settings may change. */
const TRIES_AT_MOST = 6;

/**
 * Reserves the money for a call.
 * @throws if the key does not allow the call, the money does not cover it, or the call was made before
 */
export async function reserve(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  { onInsufficient, withoutLimit }: ReserveSettings,
): Promise<Covered | Repeated> {
  let asked = withoutLimit === 'insert' ? withLimit(call.request, call.candidates) : call.request;
  let { settings } = call.key;
  let covered = cover(asked, atPricesOf(gateway, call, settings));
  for (let tries = 1; ; tries += 1) {
    const outcome = await ask(gateway, call, rid, covered, settings.rev);
    if (outcome.outcome === 'reserved') break;
    const stored = outcome.outcome === 'intent_charged' ? gateway.answers?.find(outcome.rid) : undefined;
    if (stored !== undefined) return { stored };
    if (tries === TRIES_AT_MOST) throw refusalOf(outcome, covered.heldE8);
    if (outcome.outcome === 'stale_key') {
      settings = learn(gateway, call, outcome.settings);
      covered = cover(asked, atPricesOf(gateway, call, settings));
      continue;
    }
    const first = 'rid' in outcome ? gateway.answers?.whenEnded(outcome.rid) : undefined;
    if (first !== undefined && !call.request.stream) {
      await endOf(first, call);
      continue;
    }
    if (!('availableE8' in outcome)) throw refusalOf(outcome, covered.heldE8);
    const fewer = withFewestUses(asked);
    if (fewer !== undefined) {
      asked = fewer;
      covered = cover(asked, covered);
      continue;
    }
    const mayClamp = onInsufficient === 'clamp';
    const clamped = mayClamp ? clampTo(outcome.availableE8, asked, covered.candidates) : undefined;
    if (clamped === undefined) throw refusalOf(outcome, covered.heldE8);
    covered = cover(clamped, covered);
  }
  return covered;
}

/** Waits until the first call has settled. @throws ClientLeft */
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
 * Returns the candidates at the customer's prices.
 * @throws MODEL_NOT_PRICED if the customer has no price for something that the call asks for
 */
function atPricesOf({ catalog }: Gateway, call: PayingCall, { markup }: KeySettings): CustomerCandidates<Candidate> {
  const atPrices = catalog.customerPrices.candidates(call.candidates, markup);
  if (markup !== undefined && pricedCandidates(atPrices.candidates, call.request).length < call.candidates.length)
    throw fail('MODEL_NOT_PRICED', {
      message: 'The price list of this key lacks a price for what the call requests. Ask the operator of the gateway.',
    });
  return atPrices;
}

function cover(request: ModelRequest, { candidates, priceOf }: CustomerCandidates<Candidate>): Covered {
  const grows = mayGrow(request, candidates);
  const heldE8 = holdFor(request, candidates, grows ? AHEAD_SECONDS : undefined);
  return { request, candidates, priceOf, heldE8, grows };
}

/** Returns the newer settings of a key if they allow the call, and keeps them in this process. */
function learn(gateway: Gateway, call: PayingCall, settings: KeySettings): KeySettings {
  gateway.keys.remember(call.key, settings);
  if (!isAllowed(gateway.catalog, askedFor(gateway, call), settings.allowedModels))
    throw fail('MODEL_NOT_ALLOWED', { param: 'model' });
  return settings;
}

function ask(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  { request, heldE8 }: Covered,
  keyRev: number,
): Promise<ReserveOutcome> {
  const { accountId, keyId } = call.key;
  const record = JSON.stringify(usageRecord(call, { billing: 'expired', configRevision: gateway.configRevision }));
  const tokens = tokensFor(request, call.candidates);
  const { leaseMs: lifetimeMs } = gateway.leases;
  const { intent } = call.facts.routing;
  const paid = intent && { ...intent, requestId: call.id };
  const wanted = { rid, accountId, keyId, keyRev, amountE8: heldE8, lifetimeMs, record, tokens, intent: paid };
  return measuredReserve(gateway.ledger, wanted).catch((error: unknown) => {
    releaseUnanswered(gateway, call, rid);
    throw error;
  });
}

/**
 * Releases a reserve without an answer. The ledger may have taken it or may still take it: the release returns the money or makes
 * the ledger refuse it.
 */
function releaseUnanswered(gateway: Gateway, call: PayingCall, rid: string): void {
  const { accountId, keyId } = call.key;
  call.facts.status = ERRORS.LEDGER_UNAVAILABLE.status;
  call.facts.errorCode = 'LEDGER_UNAVAILABLE';
  const record = JSON.stringify(usageRecord(call, { billing: 'released', configRevision: gateway.configRevision }));
  void gateway.settler.release({ rid, accountId, keyId, record });
}
