import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http';
import type { Route } from '../../../core/plugin';
import { showOperation as toJson } from '../record';
import type { SandboxService } from '../service';
import { OPERATION } from '../shapes';
import { findSandbox, readOperation } from '../store';

export function showOperation({ database }: SandboxService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/operations/{operationId}',
    summary: 'One operation of a sandbox.',
    answers: { 200: { description: 'The operation.', schema: OPERATION } },
    errors: ['SANDBOX_NOT_FOUND'],
    handle: async ({ key, params }, _request, response) => {
      const sandbox = await findSandbox(database, key.accountId, params['id'] ?? '');
      const operation = await readOperation(database, sandbox.id, params['operationId'] ?? '');
      if (operation === undefined) throw fail('NOT_FOUND', { message: 'The sandbox has no such operation.' });
      sendJson(response, 200, toJson(operation));
    },
  };
}
