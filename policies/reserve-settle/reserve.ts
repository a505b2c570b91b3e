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
import { clampTo, leastHold, withLimit } from './clamp';
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
}

/** The result for a repeated call whose answer is stored. */
interface Repeated {
  readonly stored: StoredAnswer;
}

/**
 * Reserves the money for a call.
 * @throws if the key does not allow the call, the money does not cover it, or the call was made before
 */
export async function reserve(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  settings: ReserveSettings,
): Promise<Covered | Repeated> {
  let tried = await askWithFreshSettings(gateway, call, rid, settings);
  for (let first = openHere(gateway, call, tried); first !== undefined; first = openHere(gateway, call, tried)) {
    await endOf(first, call);
    tried = await askWithFreshSettings(gateway, call, rid, settings);
  }
  const { outcome, wanted } = tried;
  const stored = outcome.outcome === 'intent_charged' ? gateway.answers?.find(outcome.rid) : undefined;
  if (stored !== undefined) return { stored };
  if (outcome.outcome !== 'reserved') throw refusalOf(outcome, wanted.leastE8 ?? wanted.wholeE8);
  const { heldE8 } = outcome;
  const { request, candidates, priceOf } = wanted;
  const isWhole = heldE8 === wanted.wholeE8;
  return {
    request: isWhole ? request : clampTo(heldE8, request, candidates),
    candidates,
    priceOf,
    heldE8,
  };
}

/** Returns the end of the call that this one repeats, if that is open in this process. A repeated stream does not wait. */
function openHere({ answers }: Gateway, { request }: PayingCall, { outcome }: Asked): Promise<void> | undefined {
  return request.stream || !('rid' in outcome) ? undefined : answers?.whenEnded(outcome.rid);
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

/** What a call asks of the ledger: the whole hold, and the least one if it may be clamped. */
interface Wanted extends CustomerCandidates<Candidate> {
  readonly request: ModelRequest;
  readonly wholeE8: bigint;
  readonly leastE8: bigint | undefined;
}

interface Asked {
  readonly outcome: ReserveOutcome;
  readonly wanted: Wanted;
}

/** Asks the ledger, and once more if the key's settings were changed since this process read them. */
async function askWithFreshSettings(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  settings: ReserveSettings,
): Promise<Asked> {
  const asked = await ask(gateway, call, rid, settings, call.key.settings);
  if (asked.outcome.outcome !== 'stale_key') return asked;
  return ask(gateway, call, rid, settings, learn(gateway, call, asked.outcome.settings));
}

function wantedFor(
  gateway: Gateway,
  call: PayingCall,
  { onInsufficient, withoutLimit }: ReserveSettings,
  settings: KeySettings,
): Wanted {
  const request = withoutLimit === 'insert' ? withLimit(call.request, call.candidates) : call.request;
  const { candidates, priceOf } = atPricesOf(gateway, call, settings);
  const wholeE8 = holdFor(request, candidates);
  const leastE8 = onInsufficient === 'clamp' ? leastHold(request, candidates) : undefined;
  return { request, candidates, priceOf, wholeE8, leastE8 };
}

/** Returns the newer settings of a key if they allow the call, and keeps them in this process. */
function learn(gateway: Gateway, call: PayingCall, settings: KeySettings): KeySettings {
  gateway.keys.remember(call.key, settings);
  if (!isAllowed(gateway.catalog, askedFor(gateway, call), settings.allowedModels))
    throw fail('MODEL_NOT_ALLOWED', { param: 'model' });
  return settings;
}

async function ask(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  settings: ReserveSettings,
  keySettings: KeySettings,
): Promise<Asked> {
  const wanted = wantedFor(gateway, call, settings, keySettings);
  const { accountId, keyId } = call.key;
  const { intent } = call.facts.routing;
  const request = {
    ...{ rid, accountId, keyId, keyRev: keySettings.rev },
    ...{ amountE8: wanted.wholeE8, leastE8: wanted.leastE8, lifetimeMs: gateway.leases.leaseMs },
    record: JSON.stringify(usageRecord(call, { billing: 'expired', configRevision: gateway.configRevision })),
    tokens: tokensFor(wanted.request, call.candidates),
    intent: intent && { ...intent, requestId: call.id },
  };
  const outcome = await measuredReserve(gateway.ledger, request).catch((error: unknown) => {
    releaseUnanswered(gateway, call, rid);
    throw error;
  });
  return { outcome, wanted };
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
