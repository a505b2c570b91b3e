import type { Upstream } from '../catalog/catalog';
import type { ModelRequest, Reservation } from './call';

/** A time that is long enough for the end of most answers. */
const BRIEFLY_MS = 10_000;
/** A time for reading an answer to its end. The upstream's own timeouts end most readings earlier. */
const TO_ITS_END_MS = 900_000;

/** Returns for how many milliseconds the gateway reads an upstream that took a request after the client has left. */
export function readOnMs(
  { stream }: Pick<ModelRequest, 'stream'>,
  { stopsOnCancel }: Pick<Upstream, 'stopsOnCancel'>,
  { onClientAbort }: Pick<Reservation, 'onClientAbort'>,
): number {
  const isBrief = stream && stopsOnCancel !== false && onClientAbort === 'settle';
  return isBrief ? BRIEFLY_MS : TO_ITS_END_MS;
}
