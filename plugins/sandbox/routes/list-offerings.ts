import { sendJson } from '../../../core/http';
import type { Route } from '../../../core/plugin';
import { listOf } from '../../../core/shape';
import type { SandboxService } from '../service';
import { OFFERING } from '../shapes';

export function listOfferings(service: SandboxService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/offerings',
    summary: 'What sandboxes there are, with resources and prices.',
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
