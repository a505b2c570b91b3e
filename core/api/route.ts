import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { CallKey } from '../accounts/identify';
import type { DeclaredCode, ErrorCode } from '../base/errors';
import type { Schema } from '../base/settings';
import type { BodyOwner } from '../http/buffered-bytes';
import type { Reader } from '../http/query';
import type { Operator } from '../operators/operators';
import type { OperatorRole } from '../operators/roles';
import type { Session } from '../sign-in/sessions';

/** The methods of HTTP; `*` is any. */
export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | '*';

/** What a route's handler gets besides Node's request and response. */
export interface Visit extends Pick<BodyOwner, 'onEnd'> {
  /** The request id, which the answer repeats in `X-SVC-Request-Id`. */
  readonly id: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Values of the path's `{names}`, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
}

type HandlerOf<Known> = (visit: Visit & Known, request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Answers a request, or throws. */
export type Handler = HandlerOf<unknown>;
/** The handler of a route that shows or changes what an account owns, for its keys and its console users alike. */
export type AccountHandler = HandlerOf<{ readonly accountId: string }>;
/** The handler of a route that needs an API key. */
export type KeyHandler = HandlerOf<{ readonly accountId: string; readonly key: CallKey }>;
/** The handler of a route that needs a session of the console. */
export type SessionHandler = HandlerOf<{ readonly accountId: string; readonly session: Session }>;
/** The handler of a route of the admin listener. */
export type AdminHandler = HandlerOf<{ readonly operator: Operator }>;

/**
 * Takes over a connection that the client wants to upgrade to another protocol (WebSocket), or answers with the response. An
 * error that it throws becomes an ordinary answer from the error catalogue. It must therefore throw before it writes anything.
 */
export type UpgradeHandler = (
  visit: Visit,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  response: ServerResponse,
) => Promise<void>;

/** Hosts of the public listener that belong to a plugin, which answers every request to them. */
export interface OwnHosts {
  /** Returns whether a host belongs to the plugin. The host is in lower case and has no port. */
  owns(host: string): boolean;
  readonly handle: Handler;
  readonly upgrade: UpgradeHandler;
}

/**
 * One endpoint of our own API. Its handler answers or throws, and what it throws is rendered through the error catalogue. On the
 * public listener, `auth: key` requires a valid API key and `auth: session` a person's session of the console. On the admin
 * listener, a request needs an operator's token or session of the route's `role` or above, unless `auth` is `page`.
 */
export type Route = {
  readonly method: Method;
  /**
   * Literal segments and `{names}`, as in `/v1/usage/{requestId}`. A final `{name...}` takes the rest of the path with its
   * slashes; the rest may be empty.
   */
  readonly path: string;
  /** One line that describes the route in the OpenAPI document. */
  readonly summary: string;
  /** The filters that the handler reads with `readQuery`. */
  readonly query?: Readonly<Record<string, Reader<unknown>>>;
  /** Request headers that the handler reads, with their descriptions. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The schema that the handler checks the body with. */
  readonly body?: Schema;
  /** The media type of a body that is not JSON. */
  readonly bodyType?: string;
  /** Successful answers by status; none if the route only refuses. */
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** The route's own errors, besides those that every route of its kind may have. */
  readonly errors?: readonly (ErrorCode | DeclaredCode)[];
  /** How the route is charged; absent: it is free. */
  readonly billing?: { readonly type: string; readonly [detail: string]: unknown };
  /** The direct addresses of upstreams have this route too. */
  readonly anyHost?: true;
  /** Processes that serve no clients (`ROLE=worker`) have this route too, because it reports the state of the process. */
  readonly inWorkers?: true;
  /** Programs request it all the time, so the log has a line only for its failures. */
  readonly isAskedOften?: true;
} & (
  | { readonly listener: 'public'; readonly auth: 'key'; readonly handle: KeyHandler }
  /** A route of the console's page before sign-in. docs/console.md describes it, not the OpenAPI document. */
  | { readonly listener: 'public'; readonly auth: 'page'; readonly handle: Handler }
  /** A route of the console's page after sign-in. Changes must come from the page itself. */
  | { readonly listener: 'public'; readonly auth: 'session'; readonly handle: SessionHandler }
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
      /** The role that the operator's token needs; `owner` by default. */
      readonly role?: OperatorRole;
      readonly handle: AdminHandler;
    }
  /** A route of the operator's page before sign-in. docs/operator.md describes it, not the OpenAPI document. */
  | { readonly listener: 'admin'; readonly auth: 'page'; readonly role?: never; readonly handle: Handler }
);

/** A route whose handler needs to know only the account. */
export type AccountRoute = Omit<Extract<Route, { auth: 'key' }>, 'handle'> & { readonly handle: AccountHandler };

/** What a route answers with one status. */
export interface RouteAnswer {
  readonly description: string;
  /** The schema of a JSON body, made with `shape` of core/http/shape.ts; absent if there is no body. */
  readonly schema?: Schema;
  /** The media type of a body that is not JSON. */
  readonly mediaType?: string;
  readonly orAs?: Readonly<Record<string, Schema>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns the same endpoint at a path of the console, for a person who is signed in to the account. */
export function asSessionRoute(route: AccountRoute, path: `/console/api/${string}`): Route {
  return { ...route, auth: 'session', path };
}
