import type { Ending, Reservation, Settlement } from '../../core/call';
import { isAllowed } from '../../core/catalog';
import { ERRORS, fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { newId } from '../../core/ids';
import { LEASE_MS, type ReserveOutcome } from '../../core/ledger/ledger';
import { formatUsd } from '../../core/money';
import { type CallWith, definePolicy } from '../../core/policy';
import { costOf, costOfParts, totalInputTokens } from '../../core/price';
import { usageRecord } from '../../core/usage-record';
import { holdFor, tokensFor } from './hold';

export default definePolicy({
  name: 'reserve-settle',
  summary: 'Can they pay for it? Settles when the call ends.',
  schema: {
    type: 'object',
    properties: {
      onClientAbort: {
        description:
          'When the client leaves a stream after content: `settle` charges what was relayed and stops the upstream; `drain` reads the upstream to its end, for 60 s and 1 MB at most, and charges that.',
        enum: ['settle', 'drain'],
        default: 'settle',
      },
      onInsufficient: {
        description: 'When the money does not suffice: `reject` answers 402.',
        enum: ['reject'],
        default: 'reject',
      },
    },
  },
  needs: ['key', 'request', 'candidates'],
  provides: ['reservation'],
  prepare:
    ({ onClientAbort }, gateway) =>
    async (call) => {
      if (gateway.isOutboxFull()) throw fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 5 });
      const heldE8 = holdFor(call.request, call.candidates);
      const rid = newId();
      await reserve(gateway, call, rid, heldE8);
      call.facts.reservationId = rid;
      const reservation = openReservation(gateway, call, { rid, heldE8, onClientAbort });
      call.onEnd(async () => void (await reservation.settle({ billing: 'released' })));
      return { reservation };
    },
});

type PayingCall = CallWith<'key' | 'request' | 'candidates'>;

async function reserve(gateway: Gateway, call: PayingCall, rid: string, heldE8: bigint): Promise<void> {
  const { accountId, keyId } = call.key;
  const record = JSON.stringify(usageRecord(call, { billing: 'expired', configRevision: gateway.configRevision }));
  const tokens = tokensFor(call.request, call.candidates);
  const ask = (keyRev: number): Promise<ReserveOutcome> =>
    gateway.ledger
      .reserve({ rid, accountId, keyId, keyRev, amountE8: heldE8, lifetimeMs: LEASE_MS, record, tokens })
      .catch((error: unknown) => {
        releaseUnanswered(gateway, call, rid);
        throw error;
      });
  let outcome = await ask(call.key.settings.rev);
  if (outcome.outcome === 'stale_key') {
    const { settings } = outcome;
    gateway.keys.remember(call.key, settings);
    if (!isAllowed(gateway.catalog, call.candidates, settings.allowedModels))
      throw fail('MODEL_NOT_ALLOWED', { param: 'model' });
    outcome = await ask(settings.rev);
  }
  if (outcome.outcome !== 'reserved') throw refusalOf(outcome, heldE8);
  gateway.leases.track({ accountId, keyId }, rid);
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
      return fail('KEY_RATE_LIMITED', { retryAfterSeconds: Math.ceil(outcome.retryAfterMs / 1_000) });
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

function openReservation(gateway: Gateway, call: PayingCall, promised: Omit<Reservation, 'settle'>): Reservation {
  const { accountId, keyId } = call.key;
  const { rid, heldE8 } = promised;
  let settlement: Promise<Settlement> | undefined;
  return {
    ...promised,
    settle: (ending) => {
      settlement ??= settleOnce(ending);
      return settlement;
    },
  };

  async function settleOnce(ending: Ending): Promise<Settlement> {
    gateway.leases.untrack(rid);
    const { billing } = ending;
    const record = JSON.stringify(
      usageRecord(call, {
        ...(ending.billing === 'released' ? {} : { usage: ending.usage }),
        billing,
        configRevision: gateway.configRevision,
      }),
    );
    if (ending.billing === 'released') {
      await gateway.settler.release({ rid, accountId, keyId, record });
      return { chargedE8: 0n, billing };
    }
    if (billing === 'actual') gateway.health.used(call.facts.model ?? '', ending.candidate, ending.usage, call.request);
    const costE8 = costOfEnding(ending, heldE8);
    const tokens = tokensUsed(ending);
    const { chargedE8 } = await gateway.settler.settle({ rid, accountId, keyId, costE8, record, tokens });
    return { chargedE8, billing };
  }
}

/** What an ending costs. What was only counted by us never costs more than was promised. */
function costOfEnding(ending: Exclude<Ending, { billing: 'released' }>, heldE8: bigint): bigint {
  const costE8 =
    ending.parts === undefined
      ? costOf(ending.usage, ending.candidate.model.price)
      : costOfParts(ending.parts.map(({ usage, candidate }) => ({ usage, price: candidate.model.price })));
  return ending.isEstimate && costE8 > heldE8 ? heldE8 : costE8;
}

function tokensUsed({ usage }: Exclude<Ending, { billing: 'released' }>): number {
  return totalInputTokens(usage) + (usage.outputTokens ?? 0);
}
