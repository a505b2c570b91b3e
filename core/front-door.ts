import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AdminToken, showsToken } from './admin-token';
import { fail, type GatewayError } from './errors';
import type { Served } from './express-gateway';
import { compileCallTable } from './fast-lane';
import type { Gateway } from './gateway';
import { newRequestId, sendError } from './http';
import type { OwnHosts, Route } from './plugin';
import { checkHead } from './request-head';
import { hostOf, isDirectHost, pathOf, settleTarget } from './request-target';
import type { Role } from './role';
import { compileRoutes, confirmedKey, serveVisit, toVisit } from './router';
import { signedIn } from './signed-in';
import { takeUpgrades } from './upgrades';

export interface FrontDoorOptions {
  readonly routes: readonly Route[];
  readonly hosts: readonly OwnHosts[];
  readonly adminToken: AdminToken;
  readonly fastLane: boolean;
  readonly role: Role;
}

export interface FrontDoor extends Served {
  /** Builds the pipelines of another configuration; what it returns lets new calls in through them. */
  prepare(gateway: Gateway): () => void;
  /** Lets the public listener's connections be upgraded to other protocols, where a plugin takes them. */
  takeUpgrades(server: Server): void;
}

/** Who answers what: calls, our own API, 405, 404; the admin listener behind its token. */
export function openFrontDoor(gateway: Gateway, options: FrontDoorOptions): FrontDoor {
  const isWorker = options.role === 'worker';
  const served = options.routes.filter(({ inWorkers }) => !isWorker || inWorkers === true);
  const hosts = isWorker ? [] : options.hosts;
  const publicRoutes = compileRoutes(served.filter(({ listener }) => listener === 'public'));
  const directRoutes = compileRoutes(served.filter((route) => route.listener === 'public' && route.anyHost));
  const adminRoutes = compileRoutes(served.filter(({ listener }) => listener === 'admin'));
  const who = { identify: confirmedKey(gateway.keys), signedIn: signedIn(gateway.database) };
  const callsOf = (of: Gateway) => compileCallTable(isWorker ? [] : of.configuration.pipelines, of);
  let calls = callsOf(gateway);

  return {
    prepare: (next) => {
      const table = callsOf(next);
      return () => {
        calls = table;
      };
    },
    answerUnlessCall: (request, response) => {
      const wrongTarget = checkHead(request) ?? settleTarget(request);
      if (wrongTarget !== undefined) {
        refuse(request, response, wrongTarget);
        return undefined;
      }
      const host = hostOf(request);
      const owner = hosts.find(({ owns }) => owns(host));
      if (owner !== undefined) {
        void serveVisit(toVisit(request, {}), owner.handle, request, response);
        return undefined;
      }
      const place = calls.find(request, host);
      if (place.is === 'call') return place;
      const isDirect = isDirectHost(host);
      const routes = isDirect ? directRoutes : publicRoutes;
      if (routes.methodsOf(pathOf(request)).length > 0) void routes.serve(request, response, who);
      else if (place.is === 'other-method') refuse(request, response, otherMethod(place.allow));
      else refuse(request, response, isDirect ? notDirect() : notFound(request));
      return undefined;
    },
    takeUpgrades: (server) => takeUpgrades(server, publicRoutes, hosts),
    fastLane: options.fastLane,
    admin: (request, response, expressGateway) => {
      const wrongTarget = checkHead(request) ?? settleTarget(request);
      if (wrongTarget !== undefined) refuse(request, response, wrongTarget);
      else if (!showsToken(request, options.adminToken))
        refuse(request, response, fail('INVALID_API_KEY', { message: NO_TOKEN }));
      else if (adminRoutes.methodsOf(pathOf(request)).length > 0) void adminRoutes.serve(request, response, {});
      else if (isWorker) refuse(request, response, notFound(request));
      else if (request.method === 'GET')
        expressGateway(request, response, () => refuse(request, response, notFound(request)));
      else refuse(request, response, fail('FORBIDDEN', { message: READ_ONLY }));
    },
  };
}

const NO_TOKEN = 'The admin listener needs the admin token as Authorization: Bearer.';
const READ_ONLY = "Express Gateway's own admin API is read-only here: change gateway.config.yml instead.";

function refuse(request: IncomingMessage, response: ServerResponse, error: GatewayError): void {
  sendError(request, response, error, newRequestId());
}

function notFound(request: IncomingMessage): GatewayError {
  const path = pathOf(request);
  return fail('NOT_FOUND', { message: `There is nothing at ${path.length > 100 ? `${path.slice(0, 100)}…` : path}.` });
}

function notDirect(): GatewayError {
  return fail('NOT_FOUND', {
    message: 'At an address of one upstream there are its model calls only, and only for upstreams that exist.',
  });
}

function otherMethod(methods: readonly string[]): GatewayError {
  const allow = methods.join(', ');
  return fail('METHOD_NOT_ALLOWED', { message: `This address answers to ${allow}.`, headers: { allow } });
}
