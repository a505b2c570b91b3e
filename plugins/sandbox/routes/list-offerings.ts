import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { listOf } from '../../../core/http/shape';
import { OFFERING } from '../books/shapes';
import type { SandboxService } from '../service';

export function listOfferingsRoute(service: SandboxService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/offerings',
    summary: 'The offerings of sandboxes, with resources and prices.',
    answers: { 200: { description: 'The offerings.', schema: listOf(OFFERING) } },
    handle: async (_visit, _request, response) => {
      sendJson(
        response,
        200,
        service.offerings().map(({ offering }) => offering),
      );
    },
  };
}
