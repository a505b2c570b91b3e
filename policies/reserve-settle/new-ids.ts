import type { Ending, Reservation } from '../../core/calls/call';
import type { KeptObject } from '../../core/calls/kept-objects';
import { NewIds } from '../../core/calls/new-ids';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import type { Gateway } from '../../core/gateway/gateway';
import type { PayingCall } from './reserve';

/**
 * Stores the ids of objects that the answer creates for the account, before the client sees the end. The client may name them at
 * once, at another node too. Returns the reservation unchanged if the call creates none.
 */
export function keepNewIds({ keptObjects }: Gateway, call: PayingCall, reservation: Reservation): Reservation {
  const { request, key } = call;
  if (request.makes === undefined) return reservation;
  const newIds = new NewIds(request.protocol, request.makes);
  call.newIds = newIds;
  const settle: Reservation['settle'] = async (ending) => {
    const tokens = reported(ending);
    const objects = newIds.take().map(({ kind, id, days, items, areItemsWritten, candidate: { upstream } }) => ({
      accountId: key.accountId,
      kind,
      id,
      days,
      items,
      upstream: upstream.name,
      credential: upstream.credential.name,
      ...(areItemsWritten ? tokens : UNKNOWN),
    }));
    const [settlement] = await Promise.all([
      reservation.settle(ending),
      objects.length > 0 && keptObjects.add(objects),
    ]);
    return settlement;
  };
  return { ...reservation, settle };
}

/** What the vendor's tools have put into an answer, such as an image, is not in the reported tokens. */
const UNKNOWN = { inputTokens: undefined, outputTokens: undefined };

/** Returns the reported tokens; undefined if the gateway only estimated them, because an estimate bounds nothing. */
function reported(ending: Ending): Pick<KeptObject, 'inputTokens' | 'outputTokens'> {
  if (ending.billing !== 'actual' || ending.isEstimate) return UNKNOWN;
  return { inputTokens: totalInputTokens(ending.usage), outputTokens: outputTokens(ending.usage) };
}
