import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { listOf, object } from '../../../core/http/shape';
import type { SandboxService } from '../service';
import { PLACE, showPlace } from './place';

export function listPlacesRoute({ places }: SandboxService): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/sandboxes/places',
    summary: 'Places of sandboxes that only some nodes can reach, last seen first.',
    answers: { 200: { description: 'All places.', schema: object({ items: listOf(PLACE) }) } },
    handle: async (_visit, _request, response) => {
      sendJson(response, 200, { items: (await places.list()).map((each) => showPlace(places, each)) });
    },
  };
}
