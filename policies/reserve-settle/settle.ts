import type { MaybeLater } from '../../core/base/maybe-later';
import type { Ending, Reservation, Settlement } from '../../core/calls/call';
import { NewIds } from '../../core/calls/new-ids';
import { type RecordedUsage, recordAfterHold } from '../../core/calls/usage-record';
import type { VendorResource } from '../../core/calls/vendor-resources';
import { upstreamPrice } from '../../core/catalog/customer-prices';
import { isOutside } from '../../core/catalog/demands';
import { outputTokens, reportedRegion, totalInputTokens } from '../../core/catalog/usage';
import { raiseForeignRegion } from '../../core/events/upstream-events';
import type { Gateway } from '../../core/gateway/gateway';
import {
  type Charged,
  chargeOfEnding,
  estimatedUsage,
  judgeUsage,
  noteUnknownMembers,
  recordedUsage,
  upstreamCostOf,
  withUnreported,
} from './charge';
import { tokensFor } from './hold';
import type { Covered, PayingCall } from './reserve';

/** Returns the reservation of a call whose money the ledger holds. Only the first ending settles the call. */
export function openReservation(
  gateway: Gateway,
  call: PayingCall,
  rid: string,
  paid: Covered,
  onClientAbort: Reservation['onClientAbort'],
): Reservation {
  const { accountId, keyId } = call.key;
  const { request, heldE8 } = paid;
  let settlement: MaybeLater<Settlement> | undefined;
  gateway.leases.track(call.key, rid, heldE8);
  if (request.makes !== undefined) call.newIds = new NewIds(request.protocol, request.makes);
  return {
    rid,
    onClientAbort,
    settle: (ending) => {
      settlement ??= ending.billing === 'released' ? release(ending) : charge(ending);
      const keeping = keepNewIds(gateway, call, ending);
      if (keeping === undefined) return settlement;
      return Promise.all([settlement, keeping]).then(([settled]) => settled);
    },
  };

  /** Wraps the settlement, so that the call's end does not wait for a promise that has already resolved. */
  function done(settled: Settlement): Settlement {
    settlement = settled;
    return settled;
  }

  function recordOf(usage: RecordedUsage): string {
    return recordAfterHold(paid.facts, call, usage);
  }

  function release(ending: Ending & { billing: 'released' }): Promise<Settlement> {
    const { billing } = ending;
    gateway.leases.untrack(rid);
    call.facts.billing = billing;
    noteLastAttempt(call, ending);
    const flags = noteUnknownMembers(call.facts, request) ? ['unknown'] : [];
    const released = gateway.settler.release({ rid, accountId, keyId, record: recordOf({ billing, flags }) });
    return released.then(() => done({ chargedE8: 0n, billing }));
  }

  function charge(ending: Charged): Promise<Settlement> {
    const { billing } = ending;
    gateway.leases.untrack(rid);
    call.facts.billing = billing;
    if (billing === 'estimated' && ending.isEstimate) estimatedUsage.inc({ upstream: ending.candidate.upstream.name });
    const charged = withUnreported(ending, request);
    noteLastAttempt(call, charged);
    const capped = chargeOfEnding(charged, heldE8, paid.priceOf);
    const { costE8, excessE8 } = capped;
    const { candidate, usage } = charged;
    const isOwnPrice = paid.priceOf === upstreamPrice;
    const last = call.facts.made.at(-1);
    if (isOwnPrice && last?.usage === usage) last.costE14 = capped.exactE14;
    call.facts.usage = usage;
    const doubts = judgeUsage(charged, capped, paid);
    const isSuspect = doubts.has('suspect');
    if (!isSuspect && billing === 'actual') gateway.health.used(call.facts.model ?? '', candidate, usage, request);
    const flags: string[] = [];
    if (noteUnknownMembers(call.facts, request)) flags.push('unknown');
    for (const doubt of doubts) if (!flags.includes(doubt)) flags.push(doubt);
    if (candidate.dialect !== undefined) flags.push('translated');
    if (call.facts.weakened.length > 0) flags.push('weakened');
    const region = reportedRegion(usage);
    const { demands } = call.facts;
    if (region !== undefined && demands !== undefined && isOutside(demands, region)) {
      flags.push('region');
      const { name: upstream } = candidate.upstream;
      const answer = { requestId: call.id, accountId, upstream, region, demands: demands.text };
      raiseForeignRegion(gateway.database, gateway.log, answer);
    }
    const record = recordOf({ billing, usage: recordedUsage(charged), flags, excessE8 });
    // A suspect usage report must not use up the API key's token limit.
    const tokens = isSuspect ? Math.min(tokensUsed(ending), tokensFor(request, call.candidates)) : tokensUsed(ending);
    return gateway.settler.settle({ rid, accountId, keyId, costE8, record, tokens }, ({ chargedE8 }) => {
      call.facts.costE8 = chargedE8;
      call.facts.charged = usage;
      call.facts.upstreamCostE8 = isOwnPrice ? chargedE8 : upstreamCostOf(charged);
      return done({ chargedE8, billing });
    });
  }
}

function tokensUsed({ usage }: Charged): number {
  return totalInputTokens(usage) + (outputTokens(usage) ?? 0);
}

/**
 * Stores the ids of objects that the answer creates for the account, before the client receives the end of the answer. The client may name
 * these objects immediately, and on another node.
 */
function keepNewIds(
  { vendorResources }: Gateway,
  { key, newIds }: PayingCall,
  ending: Ending,
): Promise<void> | undefined {
  const found = newIds?.take();
  if (found === undefined || found.length === 0) return undefined;
  const tokens = reportedTokens(ending);
  const objects = found.map(({ kind, id, days, items, areItemsWritten, candidate: { upstream } }) => ({
    accountId: key.accountId,
    kind,
    id,
    days,
    items,
    upstream: upstream.name,
    credential: upstream.credential.name,
    ...(areItemsWritten ? tokens : UNKNOWN),
  }));
  return vendorResources.add(objects);
}

/** Unknown token counts, for an answer with content of the vendor's tools, such as an image. The reported tokens do not include such content. */
const UNKNOWN = { inputTokens: undefined, outputTokens: undefined };

/** Returns the reported tokens; undefined if the gateway only estimated them, because an estimate is no upper bound. */
function reportedTokens(ending: Ending): Pick<VendorResource, 'inputTokens' | 'outputTokens'> {
  if (ending.billing !== 'actual' || ending.isEstimate) return UNKNOWN;
  return { inputTokens: totalInputTokens(ending.usage), outputTokens: outputTokens(ending.usage) };
}

/** Records the usage that the upstream reported for a call's last attempt, and why it may differ from what the customer pays. */
function noteLastAttempt(call: PayingCall, ending: Ending): void {
  const last = call.facts.made.at(-1);
  const isLeft = call.leftAtMs !== undefined;
  if (last === undefined || last.usage !== undefined) return;
  if (last.outcome !== 'answered') {
    if (isLeft) last.cause = 'left';
    if (ending.billing !== 'released') last.usage = ending.usage;
    return;
  }
  const attempted = ending.billing === 'released' ? call.meter?.attempted() : undefined;
  last.usage = attempted?.usage ?? (ending.billing === 'released' ? undefined : ending.usage);
  last.isReported = isWhole(ending) && attempted?.isReported !== false;
  last.cause = causeOf(call, ending, isLeft);
}

/** Returns whether the upstream finished its answer and reported its usage. */
function isWhole(ending: Ending): boolean {
  return ending.billing !== 'released' && ending.billing !== 'partial' && !ending.isEstimate;
}

function causeOf({ request }: PayingCall, ending: Ending, isLeft: boolean) {
  if (!isWhole(ending)) {
    if (isLeft) return 'left';
    return ending.billing === 'estimated' ? 'estimated' : 'failed';
  }
  const unknown = ending.billing === 'released' ? [] : (ending.usage.unknown ?? []);
  return unknown.length > 0 || request.reading.unknownMembers.length > 0 ? 'unknown' : 'answered';
}
