import type { Call, Ending } from '../../core/calls/call';
import type { Charged } from './charge';

type SettledCall = Pick<Call, 'facts' | 'hasLeft' | 'leftAtMs' | 'meter' | 'request'>;

/** Records the usage of a call's last attempt at its upstream, and why it may differ from what the customer pays. */
export function noteLastAttempt(call: SettledCall, ending: Ending): void {
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

/** Records the exact cost of the last attempt if it is what was charged. */
export function noteCost({ facts }: SettledCall, { usage }: Charged, exactE14: bigint): void {
  const last = facts.made.at(-1);
  if (last?.usage === usage) last.costE14 = exactE14;
}

/** True if the upstream finished its answer and reported its usage. */
function isWhole(ending: Ending): boolean {
  return ending.billing !== 'released' && ending.billing !== 'partial' && !ending.isEstimate;
}

function causeOf({ request }: SettledCall, ending: Ending, isLeft: boolean) {
  if (!isWhole(ending)) {
    if (isLeft) return 'left';
    return ending.billing === 'estimated' ? 'estimated' : 'failed';
  }
  const unknown = ending.billing === 'released' ? [] : (ending.usage.unknown ?? []);
  return unknown.length > 0 || (request?.reading.unknownMembers.length ?? 0) > 0 ? 'unknown' : 'answered';
}
