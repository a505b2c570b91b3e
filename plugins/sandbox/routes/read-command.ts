import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { findSandbox } from '../books/store';
import { findCommand, readOutput } from '../commands/store';
import { COMMAND, commandView, outputView } from '../commands/view';
import type { InsideService } from '../inside';

export function readCommandRoute(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/commands/{commandId}',
    summary: 'The state of a command, with the last mebibyte of its output.',
    answers: { 200: { description: 'The command.', schema: COMMAND } },
    errors: ['SANDBOX_NOT_FOUND'],
    handle: async ({ key, params }, _request, response) => {
      const sandbox = await findSandbox(service.database, key.accountId, params['id'] ?? '');
      const command = await findCommand(service.database, sandbox.id, params['commandId'] ?? '');
      sendJson(response, 200, commandView(command, outputView(await readOutput(service.database, command.id, 0))));
    },
  };
}
