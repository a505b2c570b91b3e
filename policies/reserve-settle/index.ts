import type { Ending, Reservation, Settlement } from '../../core/call';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { newId } from '../../core/ids';
import { definePolicy } from '../../core/policy';
import { costOf, costOfParts, totalInputTokens } from '../../core/price';
import { usageRecord } from '../../core/usage-record';
import { type PayingCall, reserve } from './reserve';

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
        description:
          'When the money does not suffice: `reject` answers 402; `clamp` lowers the most output tokens to what is affordable, and answers 402 when not even one is.',
        enum: ['reject', 'clamp'],
        default: 'reject',
      },
    },
  },
  needs: ['key', 'request', 'candidates'],
  provides: ['request', 'reservation'],
  boundsItself: true,
  prepare:
    ({ onClientAbort, onInsufficient }, gateway) =>
    async (call) => {
      if (gateway.isOutboxFull()) throw fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 5 });
      const rid = newId();
      const { request, heldE8 } = await reserve(gateway, call, rid, onInsufficient);
      call.facts.reservationId = rid;
      const reservation = openReservation(gateway, call, { rid, heldE8, onClientAbort });
      call.onEnd(() => reservation.settle({ billing: 'released' }));
      return { request, reservation };
    },
});

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

  async function settleOnce(ending: Ending): Promise<Settlement> {
    gateway.leases.untrack(rid);
    const { billing } = ending;
    const record = JSON.stringify(
      usageRecord(call, {
        usage: ending.billing === 'released' ? undefined : ending.usage,
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
    call.facts.costE8 = chargedE8;
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
