import { jsonBody, sendJson } from '../http/http';
import type { Filters, Reader } from '../http/query';
import { readQuery } from '../http/query';
import type { Operator } from '../operators/operators';
import type { OperatorRole } from '../operators/roles';
import type { Schema, Settings } from '../settings';
import { NOTHING } from './fields';
import type { Method, Route, Visit } from './route';

type Readers = Record<string, Reader<unknown>>;

/** The `{names}` of a path. */
type Names<P extends string> = P extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;

/** A request of an operator, with its body and its filters checked. */
interface Asked<P extends string, B extends Schema, Q extends Readers> extends Visit {
  readonly operator: Operator;
  readonly params: Readonly<Record<Names<P>, string>>;
  readonly body: Settings<B>;
  readonly filters: Filters<Q>;
}

interface AdminEndpoint<P extends string, B extends Schema, Q extends Readers>
  extends Pick<Route, 'summary' | 'answers' | 'errors'> {
  readonly role: OperatorRole;
  readonly query?: Q;
  /** Default: a POST must have an empty body. */
  readonly body?: B;
  /** Returns the JSON of the only status of `answers`, or throws. */
  readonly handle: (asked: Asked<P, B, Q>) => Promise<unknown>;
}

/** Returns an endpoint of the admin listener that takes and answers JSON. No cache stores the answer. */
export function adminRoute<
  const P extends `${Exclude<Method, '*'>} /${string}`,
  const B extends Schema = typeof NOTHING,
  Q extends Readers = Record<never, never>,
>(at: P, { body: schema, handle, ...facts }: AdminEndpoint<P, B, Q>): Route {
  const [method, path] = at.split(' ') as [Method, string];
  const body = schema ?? (method === 'POST' ? NOTHING : undefined);
  const readBody = body && jsonBody<Settings<B>>(body);
  const [status] = Object.keys(facts.answers);
  return {
    listener: 'admin',
    method,
    path,
    ...facts,
    ...(body && { body }),
    handle: async (visit, request, response) => {
      const asked = {
        ...visit,
        body: await readBody?.(request),
        filters: facts.query && readQuery(visit.query, facts.query),
      };
      sendJson(response, Number(status), await handle(asked as unknown as Asked<P, B, Q>), {
        'cache-control': 'no-store',
      });
    },
  };
}
