import { object, orNull, shape } from '../../../core/http/shape';
import type { Place } from '../books/places';
import { show } from '../books/rows';
import type { SandboxService } from '../service';

const PLACE_MEMBERS = {
  id: shape.text,
  supplier: shape.text,
  host: shape.text,
  seenAt: shape.time,
  silent: shape.yes,
  lostAt: orNull(shape.time),
  activeSandboxes: shape.integer,
};
export const PLACE = object(PLACE_MEMBERS);

/** Returns a place as operators see it: the node that alone reaches some sandboxes. */
export function showPlace(places: SandboxService['places'], place: Place) {
  return show(PLACE_MEMBERS, { ...place, silent: places.isSilent(place) });
}
