import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import type { PortRoute } from './port-route';
import { TOKEN_HEADER } from './tokens';

/** Never given to an instance: they open the gateway, or belong to whatever else is served under its name. */
const CLIENTS_OWN = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'svc-key',
  'cookie',
  'forwarded',
  TOKEN_HEADER,
  // The gateway has answered it. http-proxy would tell nobody of a request that has it.
  'expect',
]);

/** The client's headers without those that are not for the instance. */
export function headersForInstance({ headers }: IncomingMessage): IncomingHttpHeaders {
  const passed = Object.entries(headers).filter(([name]) => !CLIENTS_OWN.has(name) && !name.startsWith('x-forwarded-'));
  return Object.fromEntries(passed);
}

/** Opens a request for another protocol at an instance. http-proxy would give the client whatever the instance answers. */
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
