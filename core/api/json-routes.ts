import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CallKey } from '../accounts/identify';
import type { Schema, Settings } from '../base/settings';
import { jsonBody, largeJsonBody, sendJson } from '../http/http';
import { type Filters, type Reader, readQuery } from '../http/query';
import type { Operator } from '../operators/operators';
import type { OperatorRole } from '../operators/roles';
import type { MemberRole } from '../sign-in/member-roles';
import type { Session } from '../sign-in/sessions';
import { NOTHING } from './fields';
import type { Method, Route, Visit } from './route';

type Readers = Record<string, Reader<unknown>>;

/** The `{names}` in a path, as a union type. */
type Names<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Rest}...` ? Rest : Name) | Names<Rest>
  : never;

/** A request whose body and filters have been validated. */
interface CheckedRequest<P extends string, B extends Schema, Q extends Readers> extends Visit {
  readonly params: Readonly<Record<Names<P>, string>>;
  readonly body: Settings<B>;
  readonly filters: Filters<Q>;
}

/**
 * Makes a route that accepts and returns JSON. The route's handler does one of three things. It returns the body for the first status in
 * `answers`. It sends a response itself and returns undefined. Or it throws.
 * The body of a POST without `body` must be empty.
 */
type RouteMaker<Who, More = object> = <
  const P extends `${Exclude<Method, '*'>} /${string}`,
  const B extends Schema = typeof NOTHING,
  Q extends Readers = Record<never, never>,
>(
  at: P,
  endpoint: Pick<Route, 'summary' | 'answers' | 'errors' | 'headers' | 'inWorkers' | 'isAskedOften'> &
    More & {
      readonly query?: Q;
      readonly body?: B;
      /** The largest body, if it may be large; it then counts in the memory budget. */
      readonly maxBodyBytes?: number;
      readonly handle: (
        asked: CheckedRequest<P, B, Q> & Who,
        request: IncomingMessage,
        response: ServerResponse,
      ) => Promise<unknown>;
    },
) => Route;

/** Makes a route for operators on the admin listener. Caches must not store its answers. */
export const adminRoute = maker<{ operator: Operator; session?: Session | undefined }, { role: OperatorRole }>(
  { listener: 'admin' },
  { 'cache-control': 'no-store' },
);

/** Makes a route for customers with an API key. */
export const keyRoute = maker<{ accountId: string; key: CallKey }>({ listener: 'public', auth: 'key' });

/** Makes a route for signed-in users of the console with one of these roles. */
export const sessionRoute = maker<
  { accountId: string; memberId: string | undefined; session: Session },
  { roles: readonly MemberRole[] }
>({ listener: 'public', auth: 'session' });

/** Makes a route for the console's page before the sign-in. */
export const pageRoute = maker<unknown>({ listener: 'public', auth: 'page' });

/** Makes a route for the operators' page before the sign-in. */
export const operatorPageRoute = maker<unknown>({ listener: 'admin', auth: 'page' });

/** Makes a route for requests without credentials. */
export const openRoute = maker<unknown>({ listener: 'public', auth: 'none' });

function maker<Who, More = object>(
  place: Pick<Route, 'listener' | 'auth'>,
  headers: Record<string, string> = {},
): RouteMaker<Who, More> {
  return (at, { body: given, maxBodyBytes, handle, ...facts }) => {
    const [method, path] = at.split(' ');
    const body: Schema | undefined = given ?? (method === 'POST' ? NOTHING : undefined);
    const readBody = body && (maxBodyBytes === undefined ? jsonBody(body) : largeJsonBody(body, maxBodyBytes));
    const [status] = Object.keys(facts.answers);
    const route = {
      ...place,
      method,
      path,
      ...facts,
      ...(body && { body }),
      handle: async (visit: Visit, request: IncomingMessage, response: ServerResponse) => {
        const filters = facts.query && readQuery(visit.query, facts.query);
        const read = await readBody?.(request, visit);
        if (readBody !== undefined) await visit.stillAllowed?.();
        const asked = { ...visit, body: read, filters };
        const answer = await handle(asked as never, request, response);
        if (answer !== undefined) sendJson(response, Number(status), answer, headers);
      },
    };
    return route as unknown as Route;
  };
}
