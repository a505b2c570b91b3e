import type { Ending, Reservation } from '../../core/calls/call';
import { NewIds } from '../../core/calls/new-ids';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import type { Gateway } from '../../core/gateway/gateway';
import type { PayingCall } from './reserve';

/**
 * Has what the answer makes at the vendor written down for the account before the client is told of the end, because the client may name
 * it at once, and at another node. Returns the reservation as it is for a call that makes nothing.
 */
export function keepNewIds({ keptObjects }: Gateway, call: PayingCall, reservation: Reservation): Reservation {
  const { request, key } = call;
  if (request.makes === undefined) return reservation;
  const newIds = new NewIds(request.protocol, request.makes);
  call.newIds = newIds;
  const settle: Reservation['settle'] = async (ending) => {
    const tokens = reported(ending);
    const objects = newIds.take().map(({ kind, id, days, items, areItemsWritten, candidate: { upstream, model } }) => ({
      accountId: key.accountId,
      kind,
      id,
      days,
      items,
      itemTokens: areItemsWritten ? tokens.outputTokens : undefined,
      upstream: upstream.name,
      credential: upstream.credential.name,
      model: model.name,
      ...tokens,
    }));
    const [settlement] = await Promise.all([
      reservation.settle(ending),
      objects.length > 0 && keptObjects.add(objects),
    ]);
    return settlement;
  };
  return { ...reservation, settle };
}

/** What was only counted by us bounds nothing. */
function reported(ending: Ending): {
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
} {
  if (ending.billing !== 'actual' || ending.isEstimate) return { inputTokens: undefined, outputTokens: undefined };
  return { inputTokens: totalInputTokens(ending.usage), outputTokens: outputTokens(ending.usage) };
}
