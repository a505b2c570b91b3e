import { Agent, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { PortAddress } from '../suppliers/supplier';
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
  // The instance gets its own address.
  'host',
  // The gateway has already answered `Expect`.
  'expect',
]);

/** Returns the headers for an instance: the client's without those that it must not get, and those that its port needs. */
export function headersForInstance(
  { headers }: IncomingMessage,
  { host, port, tls, headers: own }: PortAddress,
): IncomingHttpHeaders {
  const passed = Object.entries(headers).filter(([name]) => !CLIENTS_OWN.has(name) && !name.startsWith('x-forwarded-'));
  const name = host.includes(':') ? `[${host}]` : host;
  return { ...Object.fromEntries(passed), host: port === (tls === true ? 443 : 80) ? name : `${name}:${port}`, ...own };
}

/** An agent that sends one request over an open connection. */
export class ConnectedAgent extends Agent {
  constructor(private readonly socket: Socket) {
    super();
  }

  override createConnection(): Socket {
    return this.socket;
  }
}
