import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { checkHead } from '../http/request-head';
import { hostOf, isDirectHost, pathOf, settleTarget } from '../http/request-target';
import type { OwnHosts, UpgradeHandler, Visit } from './route';
import { type Router, requestFacts, serveVisit, toVisit } from './router';

/**
 * A server with a listener for upgrades is handed every request that asks for one. Those that nobody upgrades, such as a call
 * of a client that would like HTTP/2, are served as if they had not asked.
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
    const isSound = (checkHead(request) ?? settleTarget(request)) === undefined;
    const found = isSound ? takerOf(request, routes, hosts, ofCalls) : undefined;
    whenAnswered(socket, () => {
      if (found === undefined) serveWithoutUpgrade(server, request, target, socket, head);
      else void upgrade(found, request, socket, head);
    });
  });
}

/** The socket's `close` says that a client has left. */
function ignore(): void {}

type AnsweringSocket = Duplex & { readonly _httpMessage?: ServerResponse | null };

/** Calls back when no request that the client sent before, on the same connection, is still being answered. */
function whenAnswered(socket: AnsweringSocket, then: () => void): void {
  const { _httpMessage: earlier } = socket;
  if (earlier) earlier.once('close', () => whenAnswered(socket, then));
  else if (!socket.destroyed) then();
}

/** What takes the upgrade of an address of calls; undefined when nothing does. */
export type TakerOfCalls = (request: IncomingMessage, host: string) => UpgradeHandler | undefined;

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
  // With another method a body may follow, which only the server reads.
  if (request.method !== 'GET') return undefined;
  const take = hosts.find((each) => each.owns(host))?.upgrade ?? ofCalls(request, host);
  if (take !== undefined) return { take, params: {} };
  return isDirectHost(host) ? undefined : routes.upgradeOf(pathOf(request));
}

const SWITCHING_PROTOCOLS = 101;
/** Upgrades have paths of their own, which a plugin may leave to its users. */
const UPGRADE = { path: 'upgrade' };

async function upgrade({ take, params }: Taker, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const response = new ServerResponse(request);
  response.assignSocket(socket as never);
  response.shouldKeepAlive = false;
  // Unless it answers with another one.
  response.statusCode = SWITCHING_PROTOCOLS;
  response.once('finish', () => {
    // The end of a connection that nobody reads is never noticed, and its descriptor stays open.
    socket.resume();
    socket.end();
  });
  const handle = (visit: Visit) => take(visit, request, socket, head, response);
  const visit = toVisit(request, params);
  await serveVisit(visit, handle, request, response, { facts: requestFacts(visit, UPGRADE) });
}

/** The same bytes without the wish, read once more by the server. */
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
  // From here on the server listens for errors itself, and it may ask for another upgrade on this connection.
  socket.off('error', ignore);
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}
