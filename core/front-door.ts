import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AdminToken, showsToken } from './admin-token';
import { fail, type GatewayError } from './errors';
import type { Served } from './express-gateway';
import { compileCallTable, pathOf } from './fast-lane';
import type { Gateway } from './gateway';
import { newRequestId, sendError } from './http';
import type { Route } from './plugin';
import { compileRoutes, confirmedKey } from './router';

export interface FrontDoorOptions {
  readonly routes: readonly Route[];
  readonly adminToken: AdminToken;
  readonly fastLane: boolean;
}

export interface FrontDoor extends Served {
  /** Builds the pipelines of another configuration; what it returns lets new calls in through them. */
  prepare(gateway: Gateway): () => void;
}

/** Who answers what: calls, our own API, 405, 404; the admin listener behind its token. */
export function openFrontDoor(gateway: Gateway, options: FrontDoorOptions): FrontDoor {
  const publicRoutes = compileRoutes(options.routes.filter(({ listener }) => listener === 'public'));
  const adminRoutes = compileRoutes(options.routes.filter(({ listener }) => listener === 'admin'));
  const identify = confirmedKey(gateway.keys);
  let calls = compileCallTable(gateway.configuration.pipelines, gateway);

  return {
    prepare: (next) => {
      const table = compileCallTable(next.configuration.pipelines, next);
      return () => {
        calls = table;
      };
    },
    answerUnlessCall: (request, response) => {
      const wrongHost = hostProblem(request);
      if (wrongHost !== undefined) {
        refuse(request, response, wrongHost);
        return undefined;
      }
      const place = calls.find(request);
      if (place.is === 'call') return place.serve;
      if (publicRoutes.methodsOf(pathOf(request)).length > 0) void publicRoutes.serve(request, response, { identify });
      else refuse(request, response, place.is === 'nothing' ? notFound(request) : otherMethod(place.allow));
      return undefined;
    },
    fastLane: options.fastLane,
    admin: (request, response, expressGateway) => {
      if (hasTwoHosts(request.rawHeaders)) refuse(request, response, fail('INVALID_FIELD', TWO_HOSTS));
      else if (!showsToken(request, options.adminToken))
        refuse(request, response, fail('INVALID_API_KEY', { message: NO_TOKEN }));
      else if (adminRoutes.methodsOf(pathOf(request)).length > 0) void adminRoutes.serve(request, response, {});
      else if (request.method === 'GET') expressGateway(request, response);
      else refuse(request, response, fail('FORBIDDEN', { message: READ_ONLY }));
    },
  };
}

const NO_TOKEN = 'The admin listener needs the admin token as Authorization: Bearer.';
const READ_ONLY = "Express Gateway's own admin API is read-only here: change gateway.config.yml instead.";

const TWO_HOSTS = { param: 'host', message: 'host: expected one Host header' };

/** Two hosts mean two readings of one request. An address that pins an upstream is never routed otherwise. */
function hostProblem(request: IncomingMessage): GatewayError | undefined {
  if (hasTwoHosts(request.rawHeaders)) return fail('INVALID_FIELD', TWO_HOSTS);
  const { host = '' } = request.headers;
  if (host.toLowerCase().includes('.p.')) {
    return fail('NOT_FOUND', { message: 'There is no upstream at this direct address.' });
  }
  return undefined;
}

function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}

function refuse(request: IncomingMessage, response: ServerResponse, error: GatewayError): void {
  sendError(request, response, error, newRequestId());
}

function notFound(request: IncomingMessage): GatewayError {
  const path = pathOf(request);
  return fail('NOT_FOUND', { message: `There is nothing at ${path.length > 100 ? `${path.slice(0, 100)}…` : path}.` });
}

function otherMethod(methods: readonly string[]): GatewayError {
  const allow = methods.join(', ');
  return fail('METHOD_NOT_ALLOWED', { message: `This address answers to ${allow}.`, headers: { allow } });
}
