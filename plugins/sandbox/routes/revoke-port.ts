import type { Route } from '../../../core/api/route';
import { beginOperation, findSandbox, finishOperation } from '../books/store';
import type { InsideService } from '../inside';
import { readPort } from '../ports/addresses';
import { revokeTokens } from '../ports/tokens';

export function revokePortRoute(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'DELETE',
    path: '/v1/sandboxes/{id}/ports/{port}',
    summary: 'Closes a port: its tokens become invalid, and open connections end.',
    answers: { 204: { description: 'It is closed.' } },
    errors: ['SANDBOX_NOT_FOUND', 'PORT_INVALID'],
    handle: async ({ key, params }, request, response) => {
      const port = readPort(params['port']);
      const { id } = await findSandbox(service.database, key.accountId, params['id'] ?? '');
      if (await revokeTokens(service.database, { sandboxId: id, port })) {
        const operationId = await beginOperation(service, id, { type: 'PORT_REVOKE', headers: request.headers });
        await finishOperation(service, operationId, { status: 'SUCCEEDED' });
      }
      await service.ports.endRevoked();
      response.writeHead(204).end();
    },
  };
}
