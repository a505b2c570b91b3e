import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { object, oneOf, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { findUnfinished, openRunning, RUNNING_ERRORS } from '../asking/access';
import { operate } from '../asking/operate';
import { findCommand } from '../commands/store';
import type { InsideService } from '../inside';
import { COMMAND_SIGNALS } from '../suppliers/supplier';
import { readBody } from './read-body';

const BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['signal'],
  properties: { signal: { type: 'string', enum: COMMAND_SIGNALS } },
  example: { signal: 'SIGTERM' },
} as const;

const SIGNALLED = object({ commandId: shape.uuid, signal: oneOf(...COMMAND_SIGNALS), noop: shape.yes });

export function signalCommandRoute(service: InsideService): Route {
  const read = readBody<Settings<typeof BODY>>(BODY, { maxBytes: 1_024, invalid: 'COMMAND_INVALID' });
  return {
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: '/v1/sandboxes/{id}/commands/{commandId}/signal',
    summary: 'Sends a signal to a command and to all it has started; one that has ended is left as it is.',
    body: BODY,
    answers: { 200: { description: 'It is sent; `noop`: the command had ended.', schema: SIGNALLED } },
    errors: [...RUNNING_ERRORS, 'COMMAND_INVALID'],
    handle: async (visit, request, response) => {
      const { accountId, params } = visit;
      await findUnfinished(service, accountId, params['id'] ?? '');
      const { signal } = await read(request, visit);
      const running = await openRunning(service, accountId, params['id'] ?? '');
      const { id: commandId, status } = await findCommand(
        service.database,
        running.sandbox.id,
        params['commandId'] ?? '',
      );
      const isRunning = status === 'RUNNING';
      if (isRunning) {
        const { driver, reference } = running;
        await operate(service, running, { type: 'SIGNAL', headers: request.headers }, () =>
          driver.signal(reference, commandId, signal),
        );
      }
      sendJson(response, 200, { commandId, signal, noop: !isRunning });
    },
  };
}
