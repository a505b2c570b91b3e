import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { CallKey } from '../accounts/identify';
import type { DeclaredCode, ErrorCode } from '../errors';
import type { BodyOwner } from '../http/buffered-bytes';
import type { Reader } from '../http/query';
import type { Operator } from '../operators/operators';
import type { OperatorRole } from '../operators/roles';
import type { Schema } from '../settings';
import type { Session } from '../sign-in/sessions';

/** Of HTTP; `*` is any. */
export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | '*';

/** What a route's handler is given beside Node's request and response. */
export interface Visit extends Pick<BodyOwner, 'onEnd'> {
  /** Request id, as the answer's `X-SVC-Request-Id` shows it. */
  readonly id: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Values of the path's `{names}`, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
}

/** Answers a request, or throws. */
export type Handler = (visit: Visit, request: IncomingMessage, response: ServerResponse) => Promise<void>;
/** Of a route that shows or changes what an account owns, whoever of the account asks. */
export type AccountHandler = (
  visit: Visit & { readonly accountId: string },
  request: IncomingMessage,
  response: ServerResponse,
) => Promise<void>;
/** Of a route that needs an API key. */
export type KeyHandler = (
  visit: Visit & { readonly accountId: string; readonly key: CallKey },
  request: IncomingMessage,
  response: ServerResponse,
) => Promise<void>;
/** Of a route that needs a session of the console. */
export type SessionHandler = (
  visit: Visit & { readonly accountId: string; readonly session: Session },
  request: IncomingMessage,
  response: ServerResponse,
) => Promise<void>;
/** Of a route of the admin listener. */
export type AdminHandler = (
  visit: Visit & { readonly operator: Operator },
  request: IncomingMessage,
  response: ServerResponse,
) => Promise<void>;

/**
 * Takes a connection over that the client wants for another protocol (WebSocket), or answers by the response. What it
 * throws is rendered through the error catalogue, as an ordinary answer: it throws before it has written anything, or not
 * at all.
 */
export type UpgradeHandler = (
  visit: Visit,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  response: ServerResponse,
) => Promise<void>;

/** Whole hosts of the public listener that are a plugin's own: whatever comes to them is its to answer. */
export interface OwnHosts {
  /** The host is in lower case and has no port. */
  owns(host: string): boolean;
  readonly handle: Handler;
  readonly upgrade: UpgradeHandler;
}

/**
 * One endpoint of our own API. `listener: public` with `auth: key` runs after the API key was found to be valid, with
 * `auth: session` after the session of a person of the console was;
 * everything on the admin listener after an operator's token, or session, of the route's `role` or above was, but for
 * `auth: page`. A handler answers or throws; what it throws is rendered
 * through the error catalogue.
 */
export type Route = {
  readonly method: Method;
  /**
   * `/v1/usage/{requestId}`: literal segments and `{names}`. A last `{name...}` takes all that is left of the path, slashes
   * included; it may be empty.
   */
  readonly path: string;
  /** One line for the OpenAPI document. */
  readonly summary: string;
  /** The filters it reads, with `readQuery`. */
  readonly query?: Readonly<Record<string, Reader<unknown>>>;
  /** Request headers that it reads, and what they say. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The schema it checks its body with. */
  readonly body?: Schema;
  /** Of the body, where it is not JSON. */
  readonly bodyType?: string;
  /** What it answers when all is well, by status; none where it only refuses. */
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** Errors of its own, beside those that every route of its kind may have. */
  readonly errors?: readonly (ErrorCode | DeclaredCode)[];
  /** Who pays for it how; default: it is free. */
  readonly billing?: { readonly type: string; readonly [detail: string]: unknown };
  /** It is there at the direct addresses of upstreams too. */
  readonly anyHost?: true;
  /** It is there in processes that serve nobody (`ROLE=worker`) too: it says how the process is. */
  readonly inWorkers?: true;
  /** Programs ask for it all the time: only its refusals have a line in the log. */
  readonly isAskedOften?: true;
} & (
  | { readonly listener: 'public'; readonly auth: 'key'; readonly handle: KeyHandler }
  /** Of the console, and in docs/console.md instead of the OpenAPI document: what its page asks before anybody has signed in, … */
  | { readonly listener: 'public'; readonly auth: 'page'; readonly handle: Handler }
  /** … and after. Changes must come from the page itself. */
  | { readonly listener: 'public'; readonly auth: 'session'; readonly handle: SessionHandler }
  | {
      readonly listener: 'public';
      readonly auth: 'none';
      readonly handle: Handler;
      /** The path can also be upgraded to another protocol. */
      readonly upgrade?: UpgradeHandler;
    }
  | {
      readonly listener: 'admin';
      readonly auth?: never;
      /** What a token must be allowed for it; `owner` unless given. */
      readonly role?: OperatorRole;
      readonly handle: AdminHandler;
    }
  /** Of the operator's page, and in docs/operator.md instead of the OpenAPI document: what it asks before an operator has signed in. */
  | { readonly listener: 'admin'; readonly auth: 'page'; readonly role?: never; readonly handle: Handler }
);

/** A route whose handler needs to know no more than the account. */
export type AccountRoute = Omit<Extract<Route, { auth: 'key' }>, 'handle'> & { readonly handle: AccountHandler };

/** What a route answers with one status. */
export interface RouteAnswer {
  readonly description: string;
  /** Of a JSON body, with `shape` of core/http/shape.ts; absent where there is no body. */
  readonly schema?: Schema;
  /** Where it is not JSON. */
  readonly mediaType?: string;
  /** What else the caller can have it as, by media type. */
  readonly orAs?: Readonly<Record<string, Schema>>;
  /** Headers of its own, and what they say. */
  readonly headers?: Readonly<Record<string, string>>;
}
