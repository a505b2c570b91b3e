import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import type { PortRoute } from './port-route';
import { TOKEN_HEADER } from './tokens';

/** Headers never sent to an instance, because they are meant for the gateway or for other services under its name. Most hold credentials. */
const CLIENTS_OWN = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'svc-key',
  'cookie',
  'forwarded',
  TOKEN_HEADER,
  // The gateway has already answered `Expect`. http-proxy emits no event for a request that has it.
  'expect',
]);

/** Returns the client's headers without those that an instance must not get. */
export function headersForInstance({ headers }: IncomingMessage): IncomingHttpHeaders {
  const passed = Object.entries(headers).filter(([name]) => !CLIENTS_OWN.has(name) && !name.startsWith('x-forwarded-'));
  return Object.fromEntries(passed);
}

/** Opens a request at an instance that switches protocols. http-proxy would relay any answer of the instance unchecked. */
export function upgradeAtInstance(incoming: IncomingMessage, { target, agent, headers }: PortRoute): ClientRequest {
  const url = new URL(target);
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return request({
    ...urlToHttpOptions(url),
    path: target.slice(url.origin.length),
    method: incoming.method,
    headers: { ...headersForInstance(incoming), host: url.host, connection: 'Upgrade', ...headers },
    agent,
  });
}
