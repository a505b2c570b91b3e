import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { CONCURRENT, type ConcurrencyLimits } from '../accounts/concurrent-calls';
import type { CallKey } from '../accounts/identify';
import { requestEnded } from '../api/request-ended';
import type { OwnHosts, Route } from '../api/route';
import { compileRoutes, confirmedKey, requestFacts, serveVisit, toVisit } from '../api/router';
import { takeUpgrades } from '../api/upgrades';
import { fail, type GatewayError } from '../base/errors';
import type { Role } from '../base/role';
import { isSocketPath } from '../catalog/protocols';
import { type CallTable, compileCallTable } from '../gateway/call-table';
import { declaredBy, type PipelineGateway } from '../gateway/pipeline';
import type { Cors } from '../http/cors';
import { newRequestId, sendError } from '../http/http';
import { hostOf, isDirectHost, pathOf, settleHead } from '../http/request-head';
import type { Operators } from '../operators/operators';
import { signedIn } from '../sign-in/console-requests';
import { ClientSockets, type SocketSettings } from '../sockets/client-sockets';
import { asksForWebSocket } from '../sockets/handshake';
import type { Served } from './express-gateway';

interface FrontDoorOptions {
  readonly routes: readonly Route[];
  readonly hosts: readonly OwnHosts[];
  readonly operators: Operators;
  readonly fastLane: boolean;
  readonly sockets: SocketSettings;
  readonly role: Role;
  /** The CORS settings; undefined: browsers let no page of another origin read answers. */
  readonly cors?: Cors | undefined;
}

interface FrontDoor extends Served {
  /** Builds the pipelines of a newly loaded configuration. Returns a function; calling it makes new calls use these pipelines. */
  prepare(gateway: PipelineGateway): () => void;
  /** Lets clients upgrade connections of the public listener: to WebSockets for calls, and to the protocols of plugins. */
  takeUpgrades(server: Server): ClientSockets;
}

/** Decides what answers a request: a call, our own API, 405 or 404. On the admin listener, it checks the token first. */
export function openFrontDoor(gateway: PipelineGateway, options: FrontDoorOptions): FrontDoor {
  const isWorker = options.role === 'worker';
  const served = options.routes.filter(({ inWorkers }) => !isWorker || inWorkers === true);
  const hosts = isWorker ? [] : options.hosts;
  const publicRoutes = compileRoutes(served.filter(({ listener }) => listener === 'public'));
  const directRoutes = compileRoutes(served.filter((route) => route.listener === 'public' && route.anyHost));
  const adminRoutes = compileRoutes(served.filter(({ listener }) => listener === 'admin'));
  const admit: Operators['admit'] = (request, needed) => options.operators.admit(request, needed);
  let limits = limitsOf(gateway);
  const enter = (key: CallKey) => CONCURRENT.enter(key, limits);
  const who = { identify: confirmedKey(gateway.keys), enter, signedIn: signedIn(gateway.database) };
  const callsOf = (of: PipelineGateway) => compileCallTable(isWorker ? [] : of.configuration.pipelines, of);
  let calls = callsOf(gateway);
  /** Passes a request on to Express Gateway. It requires the role `owner`, because Express Gateway shows the configuration with the values of its variables. */
  const passOn: PassOn = async (request, response, expressGateway) => {
    const isNobodys = isWorker || pathOf(request).startsWith('/admin/');
    await admit(request, isNobodys ? 'metrics' : 'owner');
    if (isNobodys) throw notFound(request);
    if (request.method !== 'GET') throw fail('FORBIDDEN', { message: READ_ONLY });
    await new Promise<void>((resolve, reject) => {
      response.once('close', resolve);
      expressGateway(request, response, () => reject(notFound(request)));
    });
  };
  const { cors } = options;

  return {
    prepare: (next) => {
      const table = callsOf(next);
      return () => {
        calls = table;
        limits = limitsOf(next);
      };
    },
    answerUnlessCall: (request, response) => {
      const wrongTarget = settleHead(request);
      if (wrongTarget !== undefined) {
        refuse(request, response, wrongTarget);
        return undefined;
      }
      const host = hostOf(request);
      const owner = hosts.find(({ owns }) => owns(host));
      if (owner !== undefined) {
        const visit = toVisit(request, {});
        void serveVisit(visit, owner.handle, request, response, { facts: requestFacts(visit, OF_HOST) });
        return undefined;
      }
      if (cors !== undefined && !isOfConsole(request) && cors(request, response)) {
        requestEnded(requestFacts({ id: newRequestId() }, PREFLIGHT), request, response);
        return undefined;
      }
      const place = calls.find(request, host);
      if (place.kind === 'call') return place;
      const isDirect = isDirectHost(host);
      const routes = isDirect ? directRoutes : publicRoutes;
      if (routes.methodsOf(pathOf(request)).length > 0) void routes.serve(request, response, who);
      else if (place.kind === 'other-method') refuse(request, response, otherMethod(place.allow));
      else refuse(request, response, isDirect ? notDirect() : notFound(request));
      return undefined;
    },
    takeUpgrades: (listener) => {
      const { identify } = who;
      const { isStopping } = gateway;
      const sockets = new ClientSockets({ listener, identify, isStopping, settings: options.sockets });
      takeUpgrades(listener, publicRoutes, hosts, (request, host) =>
        asksForWebSocket(request) && hasSocket(calls, request, host) ? sockets.upgrade : undefined,
      );
      return sockets;
    },
    fastLane: options.fastLane,
    admin: (request, response, expressGateway) => {
      const wrongTarget = settleHead(request);
      if (wrongTarget !== undefined) refuse(request, response, wrongTarget);
      else if (adminRoutes.methodsOf(pathOf(request)).length > 0) void adminRoutes.serve(request, response, { admit });
      else {
        const visit = toVisit(request, {});
        const facts = requestFacts(visit, undefined);
        void serveVisit(visit, () => passOn(request, response, expressGateway), request, response, { facts });
      }
    },
  };
}

/** Returns the concurrency limits of an API key for requests outside of pipelines: the highest limits of all pipelines. */
function limitsOf({ configuration }: PipelineGateway): ConcurrencyLimits {
  const declared = configuration.pipelines.map((pipeline) => declaredBy(pipeline).concurrentCalls);
  const most = (of: keyof ConcurrencyLimits) => Math.max(...declared.map((each) => each?.[of] ?? 0)) || Infinity;
  return { perKey: most('perKey'), perAccount: most('perAccount') };
}

type PassOn = (...asked: Parameters<Served['admin']>) => Promise<void>;

/** Returns whether a request is for the console. Only the console's own page may send it, because browsers attach the session cookie. */
function isOfConsole(request: IncomingMessage): boolean {
  const path = pathOf(request);
  return path === '/console' || path.startsWith('/console/');
}

/** Returns whether clients may send calls of this address over a WebSocket, which is so if a POST to the address is a call. */
function hasSocket(calls: CallTable, { url }: IncomingMessage, host: string): boolean {
  if (!isSocketPath(pathOf({ url }))) return false;
  return calls.find({ url, method: 'POST' }, host).kind === 'call';
}

const READ_ONLY = "Express Gateway's own admin API is read-only. Change gateway.config.yml instead.";

/** The route label, in logs and metrics, of all requests to a plugin's host name. Their paths are no labels, because they belong to the plugin. */
const OF_HOST = { path: 'host' };

/** The route label, in logs and metrics, of CORS preflights. A browser sends one before most calls of a page. */
const PREFLIGHT = { path: 'preflight', isAskedOften: true } as const;

function refuse(request: IncomingMessage, response: ServerResponse, error: GatewayError): void {
  const id = newRequestId();
  sendError(request, response, error, id);
  requestEnded({ ...requestFacts({ id }, undefined), errorCode: error.code }, request, response);
}

function notFound(request: IncomingMessage): GatewayError {
  const path = pathOf(request);
  return fail('NOT_FOUND', {
    message: `No resource exists at ${path.length > 100 ? `${path.slice(0, 100)}…` : path}.`,
  });
}

function notDirect(): GatewayError {
  return fail('NOT_FOUND', {
    message:
      'This address calls one upstream directly. Either no upstream has this name, or the path is not that of a model call.',
  });
}

function otherMethod(methods: readonly string[]): GatewayError {
  const allow = methods.join(', ');
  return fail('METHOD_NOT_ALLOWED', { message: `This path accepts only ${allow}.`, headers: { allow } });
}
