import { askedFor } from '../../core/allowed-models';
import { rateLimited } from '../../core/api-keys';
import type { ModelRequest } from '../../core/call';
import { isAllowed } from '../../core/catalog';
import { ERRORS, fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import type { KeySettings, ReserveOutcome } from '../../core/ledger/ledger';
import { measuredReserve } from '../../core/ledger/ledger-metrics';
import { formatUsd } from '../../core/money';
import type { CallWith } from '../../core/policy';
import { usageRecord } from '../../core/usage-record';
import { clampTo } from './clamp';
import { holdFor, tokensFor } from './hold';

export type PayingCall = CallWith<'key' | 'request' | 'candidates'>;

/** What is asked of the upstreams, and the hold that covers it. */
interface Covered {
  readonly request: ModelRequest;
  readonly heldE8: bigint;
}

/** Money that others take, or settings that change, between a refusal and the next try: after so many the caller is told. */
const TRIES_AT_MOST = 6;

/** @throws when the call may not be made, or is not paid for. */
export async function reserve(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  onInsufficient: 'reject' | 'clamp',
): Promise<Covered> {
  let covered = cover(call.request, call);
  let keyRev = call.key.settings.rev;
  for (let tries = 1; ; tries += 1) {
    const outcome = await ask(gateway, call, rid, covered, keyRev);
    if (outcome.outcome === 'reserved') break;
    if (tries === TRIES_AT_MOST) throw refusalOf(outcome, covered.heldE8);
    if (outcome.outcome === 'stale_key') {
      keyRev = learn(gateway, call, outcome.settings);
      continue;
    }
    const mayClamp = onInsufficient === 'clamp' && 'availableE8' in outcome;
    const clamped = mayClamp ? clampTo(outcome.availableE8, call.request, call.candidates, call.foretold) : undefined;
    if (clamped === undefined) throw refusalOf(outcome, covered.heldE8);
    covered = cover(clamped, call);
  }
  gateway.leases.track(call.key, rid);
  return covered;
}

function cover(request: ModelRequest, { candidates, foretold }: PayingCall): Covered {
  return { request, heldE8: holdFor(request, candidates, foretold) };
}

/** The key has settings this process had not heard of: their revision, if they allow the call. */
function learn(gateway: Gateway, call: PayingCall, settings: KeySettings): number {
  gateway.keys.remember(call.key, settings);
  if (!isAllowed(gateway.catalog, askedFor(gateway, call), settings.allowedModels))
    throw fail('MODEL_NOT_ALLOWED', { param: 'model' });
  return settings.rev;
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
  const wanted = { rid, accountId, keyId, keyRev, amountE8: heldE8, lifetimeMs, record, tokens };
  return measuredReserve(gateway.ledger, wanted).catch((error: unknown) => {
    releaseUnanswered(gateway, call, rid);
    throw error;
  });
}

/** A reserve without an answer may have been taken, or may be yet: the release gives it back, or has it refused. */
function releaseUnanswered(gateway: Gateway, call: PayingCall, rid: string): void {
  const { accountId, keyId } = call.key;
  call.facts.status = ERRORS.LEDGER_UNAVAILABLE.status;
  call.facts.errorCode = 'LEDGER_UNAVAILABLE';
  const record = JSON.stringify(usageRecord(call, { billing: 'released', configRevision: gateway.configRevision }));
  void gateway.settler.release({ rid, accountId, keyId, record });
}

/** Why there is no reservation, as the caller is told. */
function refusalOf(outcome: Exclude<ReserveOutcome, { outcome: 'reserved' }>, heldE8: bigint): Error {
  switch (outcome.outcome) {
    case 'unknown_key':
    case 'revoked':
    case 'unknown_account':
      return fail('INVALID_API_KEY');
    case 'frozen':
      return fail('FORBIDDEN', { message: 'This account is frozen.' });
    case 'insufficient_balance':
      return fail('INSUFFICIENT_BALANCE', { details: amounts(heldE8, outcome.availableE8) });
    case 'key_limit_exceeded':
      return fail('KEY_LIMIT_EXCEEDED', { details: amounts(heldE8, outcome.availableE8) });
    case 'rate_limited':
      return rateLimited(outcome.retryAfterMs);
    case 'not_ready':
    case 'stale_key':
      return fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 1 });
    default:
      return new Error(`a new reservation was answered with ${outcome.outcome}`);
  }
}

function amounts(requiredE8: bigint, availableE8: bigint): Record<string, string> {
  return { requiredUsd: formatUsd(requiredE8), availableUsd: formatUsd(availableE8) };
}
