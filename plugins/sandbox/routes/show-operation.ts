import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http/http';
import { showOperation } from '../books/record';
import { OPERATION } from '../books/shapes';
import { findSandbox, readOperation } from '../books/store';
import type { SandboxService } from '../service';

export function showOperationRoute({ database }: SandboxService): Route {
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
      sendJson(response, 200, showOperation(operation));
    },
  };
}
