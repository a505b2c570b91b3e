import type { Upstream } from '../catalog/catalog';
import type { ModelRequest, Reservation } from './call';

/** Long enough for the end of most answers. */
const BRIEFLY_MS = 10_000;
/** The upstream's own timeouts end most readings before. */
const TO_ITS_END_MS = 900_000;

/** Returns for how many milliseconds an upstream that took a request is read on after the client has left. */
export function readOnMs(
  { stream }: Pick<ModelRequest, 'stream'>,
  { stopsOnCancel }: Pick<Upstream, 'stopsOnCancel'>,
  { onClientAbort }: Pick<Reservation, 'onClientAbort'>,
): number {
  const isBrief = stream && stopsOnCancel !== false && onClientAbort === 'settle';
  return isBrief ? BRIEFLY_MS : TO_ITS_END_MS;
}
