import { sendJson } from '../../../core/http';
import type { Route } from '../../../core/plugin';
import type { Settings } from '../../../core/settings';
import { object, oneOf, shape } from '../../../core/shape';
import { COMMAND_SIGNALS } from '../../../core/supplier';
import { findUnfinished, openRunning, RUNNING_ERRORS } from '../access';
import { findCommand } from '../commands/store';
import type { InsideService } from '../inside';
import { operate } from '../operate';
import { readBody } from './read-body';

const BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['signal'],
  properties: { signal: { type: 'string', enum: COMMAND_SIGNALS } },
  example: { signal: 'SIGTERM' },
} as const;

const SIGNALLED = object({ commandId: shape.uuid, signal: oneOf(...COMMAND_SIGNALS), noop: shape.yes });

export function signalCommand(service: InsideService): Route {
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
        await operate(service, running, 'SIGNAL', () => driver.signal(reference, commandId, signal));
      }
      sendJson(response, 200, { commandId, signal, noop: !isRunning });
    },
  };
}
