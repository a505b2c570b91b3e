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

/** How long a TLS handshake may take: as long as a client may take for the head of a request. */
const HANDSHAKE_WITHIN_MS = 10_000;

/**
 * Adds TLS to each connection before the server reads it. The server remains an HTTP server, whose limits, timeouts and stop know
 * nothing of TLS. A connection counts once its handshake is done.
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
  // Node reports timeouts and broken requests of a connection to the server that its socket names.
  tls.on('secureConnection', (socket) => Reflect.apply(serve, server, [Object.assign(socket, { server })]));
  server.off('connection', serve as (socket: Socket) => void);
  server.on('connection', (socket: Socket) => {
    // A connection whose upgrade no handler took comes here a second time, after its handshake.
    if (socket instanceof TLSSocket) return Reflect.apply(serve, server, [socket]);
    // A TLS server does the same. Otherwise the connection stays open after its client has disconnected.
    socket.allowHalfOpen = false;
    tls.emit('connection', socket);
  });
}
