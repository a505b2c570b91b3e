import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { createServer, TLSSocket } from 'node:tls';
import type { Configuration } from '../configuration/configuration';
import type { TlsSettings } from '../configuration/schema';
import { Certificates } from './certificates';

/** The certificates of the listeners; undefined for one without TLS. */
export interface ListenerCertificates {
  readonly http: Certificates | undefined;
  readonly admin: Certificates | undefined;
}

/** Reads the certificates that a configuration names. @throws ConfigurationError */
export function openCertificates({ gateway }: Configuration, configFolder: string): ListenerCertificates {
  const open = (place: string, tls: TlsSettings | undefined) => tls && new Certificates(place, tls, configFolder);
  return { http: open('https.tls', gateway.https?.tls), admin: open('admin.tls', gateway.admin.tls) };
}

/** As long as a client may take for the head of a request. */
const HANDSHAKE_WITHIN_MS = 10_000;

/**
 * Puts TLS over each connection of a server before the server reads it. The server stays one of HTTP, whose limits, times and stop know
 * nothing of TLS: a connection counts from its handshake on.
 */
export function serveWithTls(server: Server, certificates: Certificates): void {
  const [serve] = server.listeners('connection');
  if (serve === undefined) throw new Error('the server accepts no connections');
  const tls = createServer({
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: HANDSHAKE_WITHIN_MS,
    SNICallback: (host, answer) => answer(null, certificates.contextFor(host)),
  });
  certificates.follow((pair) => tls.setSecureContext(pair));
  // Node tells the server that a socket names what becomes of its connection: timeouts, broken requests.
  tls.on('secureConnection', (socket) => Reflect.apply(serve, server, [Object.assign(socket, { server })]));
  server.off('connection', serve as (socket: Socket) => void);
  server.on('connection', (socket: Socket) => {
    // One that asked for an upgrade in vain is given to the server a second time.
    if (socket instanceof TLSSocket) return Reflect.apply(serve, server, [socket]);
    // As at a server of TLS: one whose client leaves would stay open without it.
    socket.allowHalfOpen = false;
    tls.emit('connection', socket);
  });
}
