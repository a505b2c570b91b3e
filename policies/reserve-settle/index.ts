import { ABSENT_CALLS, ABSENT_CALLS_AT_MOST } from '../../core/calls/absent-calls';
import type { Ending, Reservation, Settlement } from '../../core/calls/call';
import { type RecordedUsage, usageRecord } from '../../core/calls/usage-record';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway/gateway';
import { definePolicy } from '../../core/gateway/policy';
import { newId } from '../../core/ids';
import { chargeOfEnding, doubtsOf, recordedUsage } from './charge';
import { estimatedUsage } from './estimated';
import { intentOf } from './intent';
import { noteLastAttempt } from './note-attempt';
import { type PayingCall, reserve } from './reserve';
import { answerKeeper, sendStored } from './stored-answer';

export default definePolicy({
  name: 'reserve-settle',
  summary: 'Can they pay for it? Settles when the call ends.',
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
          'When the money does not suffice: `reject` answers 402; `clamp` lowers the most output tokens to what is affordable, and answers 402 when not even one is.',
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
      if ('stored' in covered) return void sendStored(gateway, call, response, covered.stored);
      const { request, heldE8 } = covered;
      call.facts.reservationId = rid;
      const opened = openReservation(gateway, call, { rid, heldE8, onClientAbort });
      const reservation = keepAnswer?.(opened) ?? opened;
      call.onEnd(() => reservation.settle({ billing: 'released' }));
      return { request, reservation };
    },
});

/** @throws CONCURRENCY_LIMIT for an unstreamed call of an account that left as many as it may. */
function refuseBesideAbsent({ request, key }: PayingCall): void {
  if (request.stream || !ABSENT_CALLS.isFull(key.accountId)) return;
  throw fail('CONCURRENCY_LIMIT', {
    retryAfterSeconds: 1,
    message: 'Too many unstreamed calls of this account still run although their clients disconnected.',
    details: { of: 'account', limit: ABSENT_CALLS_AT_MOST },
  });
}

function openReservation(gateway: Gateway, call: PayingCall, promised: Omit<Reservation, 'settle'>): Reservation {
  const { accountId, keyId } = call.key;
  const { rid, heldE8, onClientAbort } = promised;
  let settlement: Promise<Settlement> | undefined;
  return {
    rid,
    heldE8,
    onClientAbort,
    settle: (ending) => {
      settlement ??= settleOnce(ending);
      return settlement;
    },
  };

  function recordOf(facts: Omit<RecordedUsage, 'configRevision'>): string {
    return JSON.stringify(usageRecord(call, { ...facts, configRevision: gateway.configRevision }));
  }

  async function settleOnce(ending: Ending): Promise<Settlement> {
    gateway.leases.untrack(rid);
    const { billing } = ending;
    noteLastAttempt(call, ending);
    if (ending.billing === 'released') {
      const record = recordOf({ billing });
      await gateway.settler.release({ rid, accountId, keyId, record });
      return { chargedE8: 0n, billing };
    }
    if (billing === 'actual') gateway.health.used(call.facts.model ?? '', ending.candidate, ending.usage, call.request);
    if (billing === 'estimated' && ending.isEstimate) estimatedUsage.inc({ upstream: ending.candidate.upstream.name });
    const charge = chargeOfEnding(ending, heldE8);
    const record = recordOf({ billing, usage: recordedUsage(ending), flags: doubtsOf(ending, charge) });
    const { costE8 } = charge;
    const tokens = tokensUsed(ending);
    const { chargedE8 } = await gateway.settler.settle({ rid, accountId, keyId, costE8, record, tokens });
    call.facts.costE8 = chargedE8;
    return { chargedE8, billing };
  }
}

function tokensUsed({ usage }: Exclude<Ending, { billing: 'released' }>): number {
  return totalInputTokens(usage) + (outputTokens(usage) ?? 0);
}
