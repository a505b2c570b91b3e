import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { CallKey } from '../accounts/identify';
import type { DeclaredCode, ErrorCode } from '../base/errors';
import type { Schema } from '../base/settings';
import type { BodyOwner } from '../http/buffered-bytes';
import type { Reader } from '../http/query';
import type { Operator } from '../operators/operators';
import type { OperatorRole } from '../operators/roles';
import type { MemberRole } from '../sign-in/member-roles';
import type { Session } from '../sign-in/sessions';

/** The HTTP methods of a route; `*` stands for every method. */
export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | '*';

/** The values that a route's handler receives besides Node's request and response. */
export interface Visit extends Pick<BodyOwner, 'onEnd'> {
  /** The request id, which the response repeats in `X-SVC-Request-Id`. */
  readonly id: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The values of the path's `{names}`, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  /**
   * Checks once more that the session is open and its user has the same role. A handler that waited for a body calls it, because a client
   * may send a body slowly until its user was removed. Absent without a session. @throws NOT_SIGNED_IN, FORBIDDEN
   */
  readonly stillAllowed?: () => Promise<void>;
}

/** Whose things a request may see and change. */
interface OfAccount {
  readonly accountId: string;
  /** The member to whose own things the request is restricted; undefined for those of the whole account. */
  readonly memberId?: string | undefined;
}

type HandlerOf<Known> = (visit: Visit & Known, request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The handler of a route. It answers a request, or throws. */
export type Handler = HandlerOf<unknown>;
/** The handler of a route that shows or changes what an account owns. API keys and signed-in console users of the account share it. */
export type AccountHandler = HandlerOf<OfAccount & { readonly key?: CallKey }>;
/** The handler of a route that needs an API key. */
export type KeyHandler = HandlerOf<{ readonly accountId: string; readonly key: CallKey }>;
/** The handler of a route that needs a session of the console. */
export type SessionHandler = HandlerOf<OfAccount & { readonly session: Session }>;
/** The handler of a route of the admin listener. `session` is that of a user, if the console has the route too. */
export type AdminHandler = HandlerOf<{ readonly operator: Operator; readonly session?: Session | undefined }>;

/**
 * Takes over a connection that the client wants to upgrade to another protocol, such as WebSocket, or sends an ordinary response. An error
 * that it throws becomes a response from the error catalog. It must therefore throw before it writes.
 */
export type UpgradeHandler = (
  visit: Visit,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  response: ServerResponse,
) => Promise<void>;

/** The hosts of the public listener whose requests a plugin answers, whatever their path. */
export interface OwnHosts {
  /** Returns whether requests to a host belong to the plugin. The host is in lower case and has no port. */
  owns(host: string): boolean;
  readonly handle: Handler;
  readonly upgrade: UpgradeHandler;
}

/**
 * One endpoint of the gateway's own API. Errors that its handler throws are rendered through the error catalog. On the public listener,
 * `auth: key` requires a valid API key and `auth: session` a user's console session. On the admin listener, a request needs an operator's
 * token or session with the route's `role` or a higher one, unless `auth` is `page`.
 */
export type Route = {
  readonly method: Method;
  /** Literal segments and `{names}`, as in `/v1/usage/{requestId}`. A final `{name...}` matches the rest of the path with slashes; it may be empty. */
  readonly path: string;
  /** One line that describes the route in the OpenAPI document. */
  readonly summary: string;
  /** The filters that the handler reads with `readQuery`. */
  readonly query?: Readonly<Record<string, Reader<unknown>>>;
  /** Request headers that the handler reads, with their descriptions. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The schema with which the handler validates the body. */
  readonly body?: Schema;
  /** The media type of the request body, if it is not JSON. */
  readonly bodyType?: string;
  /** The successful answers by status; empty if the route always returns an error. */
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** The route's own error codes, besides those that every route with the same `auth` may return. */
  readonly errors?: readonly (ErrorCode | DeclaredCode)[];
  /** How a request to the route is charged. Absent if the route is free. */
  readonly billing?: { readonly type: string; readonly [detail: string]: unknown };
  /** Whether the gateway also serves this route on hosts that lead directly to one upstream. */
  readonly anyHost?: true;
  /** Whether processes that serve no clients (`ROLE=worker`) have this route too, because it reports the state of the process. */
  readonly inWorkers?: true;
  /** Whether programs request the route so often that the log has lines only for failed requests. */
  readonly isAskedOften?: true;
} & (
  | { readonly listener: 'public'; readonly auth: 'key'; readonly handle: KeyHandler }
  /** A route that the console's page uses before the sign-in. docs/console.md describes it; the OpenAPI document does not. */
  | { readonly listener: 'public'; readonly auth: 'page'; readonly handle: Handler }
  /** A route of the console's page after the sign-in. The page itself must send every change. */
  | {
      readonly listener: 'public';
      readonly auth: 'session';
      /** The roles of the users who may ask; others get FORBIDDEN before the body is read. */
      readonly roles: readonly MemberRole[];
      readonly handle: SessionHandler;
    }
  | {
      readonly listener: 'public';
      readonly auth: 'none';
      readonly handle: Handler;
      /** Upgrades a connection of this path to another protocol. */
      readonly upgrade?: UpgradeHandler;
    }
  | {
      readonly listener: 'admin';
      readonly auth?: never;
      /** The role that the operator needs. Default: `owner`. */
      readonly role?: OperatorRole;
      readonly handle: AdminHandler;
    }
  /** A route that the operators' page uses before the sign-in. docs/operator.md describes it; the OpenAPI document does not. */
  | { readonly listener: 'admin'; readonly auth: 'page'; readonly role?: never; readonly handle: Handler }
);

/** A route whose handler needs only the account, not the key or session. */
export type AccountRoute = Omit<Extract<Route, { auth: 'key' }>, 'handle'> & { readonly handle: AccountHandler };

/** The answer of a route with one status. */
export interface RouteAnswer {
  readonly description: string;
  /** The schema of a JSON answer, made with `shape` of core/http/shape.ts; absent if the answer has no body. */
  readonly schema?: Schema;
  /** The media type of the answer, if it is not JSON. */
  readonly mediaType?: string;
  readonly orAs?: Readonly<Record<string, Schema>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns the route at a path of the console, for users with these roles who are signed in to the account. */
export function asSessionRoute(
  route: AccountRoute,
  path: `/console/api/${string}`,
  roles: readonly MemberRole[],
): Route {
  return { ...route, auth: 'session', path, roles };
}
