import type { IncomingMessage } from 'node:http';
import type { OwnHosts, Route, Visit } from '../../../core/api/route';
import { fail } from '../../../core/base/errors';
import { sendJson } from '../../../core/http/http';
import { publicUrlOf } from '../../../core/http/public-url';
import { hostOf } from '../../../core/http/request-head';
import { mapOf, object, oneOf, shape } from '../../../core/http/shape';
import { hashToken } from '../../../core/sign-in/sessions';
import { openRunning, operate, RUNNING_ERRORS } from '../admission/access';
import type { InstanceService } from '../instance';
import type { Passage } from '../ports/port-proxy';
import { accountOfToken, issueToken, type PortPlace, revokeTokens, TOKEN_HEADER } from '../ports/tokens';
import { beginOperation, findSandbox, finishOperation, touchSandbox } from '../store/queries';
import { toCallerError } from '../suppliers/failure';
import { BYTES } from './files';
import { byKey } from './parts';

const OPENED = object({
  port: shape.integer,
  url: shape.text,
  headers: mapOf(shape.text),
  visibility: oneOf('token'),
  expiresAt: shape.time,
});

/** The routes of ports of a running sandbox. */
export function portRoutes(service: InstanceService): readonly Route[] {
  const { database, ports } = service;
  /**
   * Finds the connection to a port that is reached by a path. Adds headers to its answers, because its pages share the gateway's origin.
   * They must not act as pages of the gateway.
   */
  const passageOf = ({ params }: Visit, request: IncomingMessage) =>
    findPassage(service, { sandboxId: params['id'] ?? '', port: readPort(params['port']) }, request, {
      path: pathBelowProxy(request),
      headers: { 'content-security-policy': 'sandbox' },
    });
  return [
    byKey(
      'GET',
      '/v1/sandboxes/{id}/ports/{port}',
      'Opens a port of the sandbox: its address, and the headers that requests need.',
      {
        answers: { 200: { description: 'Its address.', schema: OPENED } },
        errors: [...RUNNING_ERRORS, 'PORT_INVALID'],
        handle: async ({ key, params }, request, response) => {
          const port = readPort(params['port']);
          const running = await openRunning(service, key.accountId, params['id'] ?? '', 'ports');
          const place = { sandboxId: running.sandbox.id, port };
          const operation = { type: 'PORT_EXPOSE', headers: request.headers } as const;
          const { token, expiresAtMs } = await operate(service, running, operation, () =>
            issueToken(service, place, key),
          );
          sendJson(response, 200, {
            port,
            url: urlOfPort(place, { publicUrl: publicUrlOf(request), domain: service.portDomain }),
            headers: { [TOKEN_HEADER]: token },
            visibility: 'token',
            expiresAt: new Date(expiresAtMs).toISOString(),
          });
        },
      },
    ),
    byKey(
      'DELETE',
      '/v1/sandboxes/{id}/ports/{port}',
      'Closes a port: its tokens become invalid, and open connections end.',
      {
        answers: { 204: { description: 'It is closed.' } },
        errors: ['SANDBOX_NOT_FOUND', 'PORT_INVALID'],
        handle: async ({ key, params }, request, response) => {
          const port = readPort(params['port']);
          const { id } = await findSandbox(database, key.accountId, params['id'] ?? '');
          if (await revokeTokens(database, { sandboxId: id, port })) {
            const operationId = await beginOperation(service, id, { type: 'PORT_REVOKE', headers: request.headers });
            await finishOperation(service, operationId, { status: 'SUCCEEDED' });
          }
          await ports.endRevoked();
          response.writeHead(204).end();
        },
      },
    ),
    {
      listener: 'public',
      auth: 'none',
      method: '*',
      path: '/v1/sandboxes/{id}/ports/{port}/proxy/{rest...}',
      summary: 'A port of the sandbox, over HTTP and WebSocket; needs the headers from the opening.',
      headers: { [TOKEN_HEADER]: 'As the answer that opened the port says.' },
      answers: {
        200: {
          description: 'What the port answers, with its own status, headers and body.',
          schema: BYTES,
          mediaType: '*/*',
        },
      },
      errors: [...RUNNING_ERRORS, 'INVALID_API_KEY', 'PORT_INVALID'],
      handle: async (visit, request, response) => ports.pass(request, response, await passageOf(visit, request)),
      upgrade: async (visit, request, socket, head, response) =>
        ports.passUpgrade(request, socket, head, await passageOf(visit, request), response),
    },
  ];
}

/** Serves every port at an origin of its own: `{port}-{id}.{domain}`. undefined if no domain is configured. */
export function portHosts(service: InstanceService): OwnHosts | undefined {
  const { portDomain: domain } = service;
  if (domain === undefined) return undefined;
  const passageOf = (request: IncomingMessage) => {
    const place = placeOfHost(hostOf(request), domain);
    if (place === undefined) throw fail('SANDBOX_NOT_FOUND');
    return findPassage(service, place, request, { path: request.url ?? '/', headers: {} });
  };
  return {
    owns: (host) => host.endsWith(`.${domain}`),
    handle: async (_visit, request, response) => service.ports.pass(request, response, await passageOf(request)),
    upgrade: async (_visit, request, socket, head, response) =>
      service.ports.passUpgrade(request, socket, head, await passageOf(request), response),
  };
}

/**
 * Returns the address of the port and its headers, if the request's token opens the port.
 * @throws INVALID_API_KEY without a token; SANDBOX_NOT_FOUND if the token opens another port or sandbox, or nothing; FORBIDDEN
 * while the account is frozen
 */
async function findPassage(
  service: InstanceService,
  place: PortPlace,
  request: IncomingMessage,
  rest: Pick<Passage, 'path' | 'headers'>,
): Promise<Passage> {
  const token = request.headers[TOKEN_HEADER];
  if (typeof token !== 'string')
    throw fail('INVALID_API_KEY', {
      message: `The header ${TOKEN_HEADER} is missing. Open the port to get its value.`,
    });
  const tokenHash = hashToken(token);
  const accountId = await accountOfToken(service, place, tokenHash);
  if (accountId === undefined) throw fail('SANDBOX_NOT_FOUND');
  const { driver, reference, sandbox } = await openRunning(service, accountId, place.sandboxId);
  if (service.now() - sandbox.lastUsedAtMs > TOUCH_EVERY_MS) await touchSandbox(service, sandbox.id);
  try {
    return { ...rest, tokenHash, sandboxId: sandbox.id, address: await driver.dialPort(reference, place.port) };
  } catch (error) {
    throw toCallerError(error);
  }
}

const TOUCH_EVERY_MS = 5_000;

const HOST = /^(\d{1,5})-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const BELOW = /^\/v1\/sandboxes\/[^/]+\/ports\/[^/]+\/proxy/;

/** Reads a port number. @throws PORT_INVALID */
function readPort(text: string | undefined): number {
  const port = /^\d{1,5}$/.test(text ?? '') ? Number(text) : 0;
  if (port < 1 || port > 65_535) {
    throw fail('PORT_INVALID', { param: 'port', message: 'port: expected an integer from 1 to 65535' });
  }
  return port;
}

/** Returns the port and sandbox of a host such as `8000-<id>.sandboxes.example`, if the domain is `sandboxes.example`. undefined for another host. */
function placeOfHost(host: string, domain: string): PortPlace | undefined {
  const [, port, sandboxId = ''] = HOST.exec(host.slice(0, -domain.length - 1)) ?? [];
  return port === undefined ? undefined : { port: readPort(port), sandboxId };
}

/** Returns the path and query for the instance, byte for byte as the client sent them. */
function pathBelowProxy({ url = '' }: IncomingMessage): string {
  const rest = url.replace(BELOW, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Returns the URL at which clients reach a port: a host of its own if there is a domain for ports, otherwise a path. */
function urlOfPort(
  { sandboxId, port }: PortPlace,
  { publicUrl, domain }: { readonly publicUrl: string; readonly domain: string | undefined },
): string {
  if (domain === undefined) return `${publicUrl}/v1/sandboxes/${sandboxId}/ports/${port}/proxy/`;
  const { protocol, port: publicPort } = new URL(publicUrl);
  return `${protocol}//${port}-${sandboxId}.${domain}${publicPort === '' ? '' : `:${publicPort}`}/`;
}
