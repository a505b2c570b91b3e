import { type ClientRequest, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import type { PortAddress } from '../../../core/supplier';
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
  // The gateway has answered it.
  'expect',
]);

/** Opens the client's request at an instance: its method and headers, without what is not for the instance. */
export function requestOfInstance(incoming: IncomingMessage, address: PortAddress, path: string): ClientRequest {
  const url = new URL(address.url);
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const headers = { ...headersForInstance(incoming), host: url.host, ...address.headers };
  // One connection per request: another instance may get the address of one that has ended.
  return request({ ...urlToHttpOptions(url), path, method: incoming.method, headers, agent: false });
}

function headersForInstance({ headers }: IncomingMessage): OutgoingHttpHeaders {
  const passed = Object.entries(headers).filter(([name]) => !CLIENTS_OWN.has(name) && !name.startsWith('x-forwarded-'));
  return { ...Object.fromEntries(passed), connection: headers.upgrade === undefined ? 'close' : 'Upgrade' };
}
