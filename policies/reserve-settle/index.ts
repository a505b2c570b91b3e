import { ABSENT_CALLS, ABSENT_CALLS_AT_MOST } from '../../core/calls/absent-calls';
import type { Ending, Reservation, Settlement } from '../../core/calls/call';
import { type RecordedUsage, usageRecord } from '../../core/calls/usage-record';
import { upstreamPrice } from '../../core/catalog/customer-prices';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway/gateway';
import { definePolicy } from '../../core/gateway/policy';
import { newId } from '../../core/ids';
import { chargeOfEnding, recordedUsage, upstreamCostOf } from './charge';
import { tokensFor } from './hold';
import { intentOf } from './intent';
import { estimatedUsage, judgeUsage, noteUnknownMembers, withUnreported } from './judge-usage';
import { keepNewIds } from './new-ids';
import { noteCost, noteLastAttempt } from './note-attempt';
import { type Covered, type PayingCall, reserve } from './reserve';
import { answerKeeper, sendStored } from './stored-answer';

export default definePolicy({
  contract: 'policy/1',
  name: 'reserve-settle',
  summary: 'Can the account pay for the call? Settles when the call ends.',
  schema: {
    type: 'object',
    properties: {
      onClientAbort: {
        description:
          'When the client leaves a stream after the upstream took the request: `settle` reads the upstream on for 10 s at most, then cancels it and charges what is known; `drain` reads it to its end, for 15 minutes at most, and charges that.',
        enum: ['settle', 'drain'],
        default: 'settle',
      },
      onInsufficient: {
        description:
          'If the balance is too low: `reject` answers 402; `clamp` holds half of what is left, at least the input and 1,024 output tokens, and lowers the limit of output to that.',
        enum: ['reject', 'clamp'],
        default: 'reject',
      },
      withoutLimit: {
        description:
          "When a call names no limit, the model's `maxOutput` is held. `insert` also writes it into the forwarded body.",
        enum: ['hold', 'insert'],
        default: 'hold',
      },
    },
  },
  needs: ['key', 'request', 'candidates'],
  provides: ['request', 'reservation'],
  boundsItself: true,
  prepare:
    ({ onClientAbort, ...settings }, gateway) =>
    async (call, message, response) => {
      if (gateway.isOutboxFull()) throw fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 5 });
      refuseBesideAbsent(call);
      const rid = newId();
      call.facts.routing.intent = intentOf(call, message);
      const keepAnswer = call.facts.routing.intent && answerKeeper(gateway, call, rid);
      const covered = await reserve(gateway, call, rid, settings);
      if ('stored' in covered) {
        await sendStored(gateway, call, response, covered.stored);
        return;
      }
      const { request } = covered;
      call.facts.reservationId = rid;
      const opened = openReservation(gateway, call, { rid, ...covered }, onClientAbort);
      const reservation = keepNewIds(gateway, call, keepAnswer?.(opened) ?? opened);
      call.onEnd(() => reservation.settle({ billing: 'released' }));
      return { request, reservation };
    },
});

/**
 * Refuses an unstreamed call if too many calls of the account still run without their clients.
 * @throws CONCURRENCY_LIMIT
 */
function refuseBesideAbsent({ request, key }: PayingCall): void {
  if (request.stream || !ABSENT_CALLS.isFull(key.accountId)) return;
  throw fail('CONCURRENCY_LIMIT', {
    retryAfterSeconds: 1,
    message: 'Too many unstreamed calls of this account still run although their clients disconnected.',
    details: { of: 'account', limit: ABSENT_CALLS_AT_MOST },
  });
}

function openReservation(
  gateway: Gateway,
  call: PayingCall,
  paid: Covered & { readonly rid: string },
  onClientAbort: Reservation['onClientAbort'],
): Reservation {
  const { accountId, keyId } = call.key;
  const { rid, request, heldE8 } = paid;
  let settlement: Promise<Settlement> | undefined;
  gateway.leases.track(call.key, rid, heldE8);
  return {
    rid,
    onClientAbort,
    settle: (ending) => {
      settlement ??= settleOnce(ending);
      return settlement;
    },
  };

  function recordOf(facts: RecordedUsage): string {
    return JSON.stringify(usageRecord(call, facts));
  }

  async function settleOnce(ending: Ending): Promise<Settlement> {
    gateway.leases.untrack(rid);
    const { billing } = ending;
    const { configRevision } = gateway;
    call.facts.billing = billing;
    if (ending.billing === 'released') {
      noteLastAttempt(call, ending);
      const flags = noteUnknownMembers(call.facts, request) ? ['unknown'] : [];
      const record = recordOf({ billing, flags, configRevision });
      await gateway.settler.release({ rid, accountId, keyId, record });
      return { chargedE8: 0n, billing };
    }
    if (billing === 'estimated' && ending.isEstimate) estimatedUsage.inc({ upstream: ending.candidate.upstream.name });
    const charged = withUnreported(ending, request);
    noteLastAttempt(call, charged);
    const charge = chargeOfEnding(charged, heldE8, paid.priceOf);
    const { costE8, excessE8 } = charge;
    const isOwnPrice = paid.priceOf === upstreamPrice;
    if (isOwnPrice) noteCost(call, charged, charge.exactE14);
    const { candidate, usage } = charged;
    call.facts.usage = usage;
    const doubts = judgeUsage(charged, charge, paid);
    const isSuspect = doubts.has('suspect');
    if (!isSuspect && billing === 'actual') gateway.health.used(call.facts.model ?? '', candidate, usage, request);
    const flags = new Set<string>(noteUnknownMembers(call.facts, request) ? ['unknown', ...doubts] : doubts);
    if (candidate.dialect !== undefined) flags.add('translated');
    const record = recordOf({ billing, usage: recordedUsage(charged), flags: [...flags], excessE8, configRevision });
    // A suspect report must not use up the key's limit of tokens.
    const tokens = isSuspect ? Math.min(tokensUsed(ending), tokensFor(request, call.candidates)) : tokensUsed(ending);
    const { chargedE8 } = await gateway.settler.settle({ rid, accountId, keyId, costE8, record, tokens });
    call.facts.costE8 = chargedE8;
    call.facts.charged = charged.usage;
    call.facts.upstreamCostE8 = isOwnPrice ? chargedE8 : upstreamCostOf(charged);
    return { chargedE8, billing };
  }
}

function tokensUsed({ usage }: Exclude<Ending, { billing: 'released' }>): number {
  return totalInputTokens(usage) + (outputTokens(usage) ?? 0);
}
