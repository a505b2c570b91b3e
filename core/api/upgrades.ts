import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { whenAnswered } from '../http/lingering-close';
import { hostOf, isDirectHost, pathOf, settleHead } from '../http/request-head';
import type { OwnHosts, UpgradeHandler, Visit } from './route';
import { type Router, requestFacts, serveVisit, toVisit } from './router';

/**
 * Handles all upgrade requests of a server, because Node stops serving them once this listener exists. A request without an upgrade
 * handler, such as one that offers HTTP/2, is served as if it had no `upgrade` header.
 */
export function takeUpgrades(
  server: Server,
  routes: Router,
  hosts: readonly OwnHosts[],
  ofCalls: TakerOfCalls = () => undefined,
): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', ignore);
    const target = request.url ?? '/';
    const isSound = settleHead(request) === undefined;
    const found = isSound ? takerOf(request, routes, hosts, ofCalls) : undefined;
    whenAnswered(socket, () => {
      if (found === undefined) serveWithoutUpgrade(server, request, target, socket, head);
      else void upgrade(found, request, socket, head);
    });
  });
}

/** Ignores a socket's error, because its `close` event already reports that the client has disconnected. */
function ignore(): void {}

/** Returns the upgrade handler for a host and path on which clients make calls; undefined if there is none. */
type TakerOfCalls = (request: IncomingMessage, host: string) => UpgradeHandler | undefined;

interface Taker {
  readonly take: UpgradeHandler;
  readonly params: Visit['params'];
}

function takerOf(
  request: IncomingMessage,
  routes: Router,
  hosts: readonly OwnHosts[],
  ofCalls: TakerOfCalls,
): Taker | undefined {
  const host = hostOf(request);
  // Only a GET request can upgrade. A request with another method may have a body, and only the HTTP server can read bodies.
  if (request.method !== 'GET') return undefined;
  const take = hosts.find((each) => each.owns(host))?.upgrade ?? ofCalls(request, host);
  if (take !== undefined) return { take, params: {} };
  return isDirectHost(host) ? undefined : routes.upgradeOf(pathOf(request));
}

const SWITCHING_PROTOCOLS = 101;
/** The metrics label of all upgrades. The path is not the label, because plugins may let their users choose paths. */
const UPGRADE = { path: 'upgrade' };

async function upgrade({ take, params }: Taker, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const response = new ServerResponse(request);
  response.assignSocket(socket as never);
  response.shouldKeepAlive = false;
  // The default status of an answer to an upgrade request; the upgrade handler may answer with another one.
  response.statusCode = SWITCHING_PROTOCOLS;
  response.once('finish', () => {
    // Reads the socket's remaining bytes, because Node never notices the end of an unread connection and keeps its file descriptor open.
    socket.resume();
    socket.end();
  });
  const handle = (visit: Visit) => take(visit, request, socket, head, response);
  const visit = toVisit(request, params);
  await serveVisit(visit, handle, request, response, { facts: requestFacts(visit, UPGRADE) });
}

/** Makes the server parse the same request again, without its `upgrade` header. */
function serveWithoutUpgrade(
  server: Server,
  request: IncomingMessage,
  target: string,
  socket: Duplex,
  head: Buffer,
): void {
  const lines = [`${request.method} ${target} HTTP/${request.httpVersion}`];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index] ?? '';
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${request.rawHeaders[index + 1]}`);
  }
  // From here on the server handles the socket's errors, and the client may request another upgrade on this connection.
  socket.off('error', ignore);
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}
