import { object, orNull, shape } from '../../../core/http/shape';
import type { Place } from '../books/places';
import { showTime } from '../books/record';
import type { SandboxService } from '../service';

/** Shows a place, the node that alone reaches some sandboxes, to operators. */
export function showPlace(places: SandboxService['places'], { seenAtMs, lostAtMs, ...place }: Place) {
  return {
    ...place,
    seenAt: showTime(seenAtMs),
    silent: places.isSilent({ seenAtMs, lostAtMs, ...place }),
    lostAt: showTime(lostAtMs),
  };
}

/** What `showPlace` answers, as the OpenAPI document says it. */
export const PLACE = object({
  id: shape.text,
  supplier: shape.text,
  host: shape.text,
  seenAt: shape.time,
  silent: shape.yes,
  lostAt: orNull(shape.time),
  activeSandboxes: shape.integer,
});
