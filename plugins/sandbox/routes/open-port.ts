import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http/http';
import { publicUrlOf } from '../../../core/http/public-url';
import { mapOf, object, oneOf, shape } from '../../../core/http/shape';
import { openRunning, RUNNING_ERRORS } from '../asking/access';
import { operate } from '../asking/operate';
import type { InsideService } from '../inside';
import { readPort, urlOfPort } from '../ports/addresses';
import { issueToken, TOKEN_HEADER } from '../ports/tokens';

export function openPortRoute(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/ports/{port}',
    summary: 'Opens a port of the sandbox: its address, and the headers that requests need.',
    answers: { 200: { description: 'Its address.', schema: OPENED } },
    errors: [...RUNNING_ERRORS, 'PORT_INVALID'],
    handle: async ({ key, params }, request, response) => {
      const port = readPort(params['port']);
      const running = await openRunning(service, key.accountId, params['id'] ?? '');
      if (!running.sandbox.offering.capabilities.ports) throw fail('NOT_SUPPORTED');
      const place = { sandboxId: running.sandbox.id, port };
      const { token, expiresAtMs } = await operate(
        service,
        running,
        { type: 'PORT_EXPOSE', headers: request.headers },
        () => issueToken(service, place, key),
      );
      sendJson(response, 200, {
        port,
        url: urlOfPort(place, { publicUrl: publicUrlOf(request), domain: service.portDomain }),
        headers: { [TOKEN_HEADER]: token },
        visibility: 'token',
        expiresAt: new Date(expiresAtMs).toISOString(),
      });
    },
  };
}

const OPENED = object({
  port: shape.integer,
  url: shape.text,
  headers: mapOf(shape.text),
  visibility: oneOf('token'),
  expiresAt: shape.time,
});
