import type { Route, RouteAnswer } from '../../core/api/route';
import { mapValues } from '../../core/base/collections';
import type { DeclaredCode, ErrorCode } from '../../core/base/errors';
import { USUAL_ROLE } from '../../core/operators/roles';
import { errorResponses } from './errors';
import { toOpenApi } from './schema';

/** Describes the gateway's own endpoints on one listener. */
export function routePaths(routes: readonly Route[], listener: Route['listener']): Record<string, object> {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes.filter((each) => each.listener === listener && !isOfPage(each) && isOffered(each))) {
    const path = route.path.replaceAll('...}', '}');
    // Describe a route that accepts every method as GET, because GET needs no body.
    const method = route.method === '*' ? 'get' : route.method.toLowerCase();
    paths[path] = { ...paths[path], [method]: operation(route, method) };
  }
  return paths;
}

/**
 * Tells whether a route belongs to a page. The document omits routes of pages, because their interface changes with the page;
 * docs/console.md and docs/operator.md describe them.
 */
function isOfPage(route: Route): boolean {
  return route.auth === 'page' || route.auth === 'session';
}

/** Tells whether a route declares answers. The document omits a path that only rejects, because a generated client cannot use it. */
function isOffered({ answers }: Route): boolean {
  return Object.keys(answers).length > 0;
}

function operation(route: Route, method: string): object {
  const { path, summary, body, bodyType = JSON_TYPE, answers, billing = { type: 'FREE' } } = route;
  return {
    operationId: operationId(method, path),
    summary,
    tags: [tagOf(path)],
    ...(route.listener === 'public' && route.auth === 'none' && { security: [] }),
    parameters: [...pathParameters(path), ...queryParameters(route), ...headerParameters(route)],
    ...(body !== undefined && {
      requestBody: { required: isRequired(body), content: { [bodyType]: { schema: toOpenApi(body) } } },
    }),
    responses: { ...mapValues(answers as Record<string, RouteAnswer>, response), ...errorResponses(errorsOf(route)) },
    'x-billing': billing,
    ...(route.listener === 'admin' && { 'x-role': route.role ?? USUAL_ROLE }),
  };
}

const JSON_TYPE = 'application/json';

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)(?:\.\.\.)?\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
}

function queryParameters({ query = {} }: Route): object[] {
  return Object.entries(query).map(([name, { schema = { type: 'string' }, whenMissing }]) => {
    const { description, ...rest } = schema as { description?: string };
    const required = whenMissing !== undefined;
    return { name, in: 'query', required, ...(description !== undefined && { description }), schema: toOpenApi(rest) };
  });
}

function headerParameters({ headers = {} }: Route): object[] {
  return Object.entries(headers).map(([name, description]) => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string' },
  }));
}

function isRequired(body: object): boolean {
  const { required = [], anyOf = [] } = body as { required?: readonly string[]; anyOf?: readonly object[] };
  return required.length > 0 || (anyOf.length > 0 && anyOf.every(isRequired));
}

function response({ description, schema, mediaType = JSON_TYPE, orAs = {}, headers }: RouteAnswer): object {
  const bodies = { ...(schema !== undefined && { [mediaType]: schema }), ...orAs };
  return {
    description,
    ...(headers !== undefined && { headers: mapValues(headers, (says) => header(says, 'string')) }),
    ...(Object.keys(bodies).length > 0 && { content: mapValues(bodies, (each) => ({ schema: toOpenApi(each) })) }),
  };
}

function errorsOf(route: Route): readonly (ErrorCode | DeclaredCode)[] {
  const needsKey = route.listener === 'admin' || route.auth === 'key';
  const isPublic = route.listener === 'public' && route.auth === 'key';
  return [
    // The gateway returns `INVALID_FIELD` for an invalid filter, an invalid field of the body, or a second Host header.
    'INVALID_FIELD',
    ...(route.body === undefined ? [] : (['UNSUPPORTED_MEDIA_TYPE'] as const)),
    ...(readsJson(route) ? (['INVALID_JSON', 'BODY_TOO_LARGE'] as const) : []),
    ...(needsKey ? (['INVALID_API_KEY'] as const) : []),
    ...(route.listener === 'admin' ? (['ADMIN_TOKEN_SLOWED', 'OPERATOR_ROLE_NEEDED'] as const) : []),
    ...(route.path.includes('{') ? (['NOT_FOUND'] as const) : []),
    ...(isPublic ? (['API_KEY_EXPIRED', 'ADDRESS_NOT_ALLOWED', 'CONCURRENCY_LIMIT'] as const) : []),
    ...(isPublic ? (['KEY_RATE_LIMITED', 'LEDGER_UNAVAILABLE', 'OVERLOADED'] as const) : []),
    ...(route.errors ?? []),
    'INTERNAL_ERROR',
    'DATABASE_UNAVAILABLE',
  ];
}

function readsJson({ body, bodyType }: Route): boolean {
  return body !== undefined && bodyType === undefined;
}

/** Describes a header of an answer. */
export function header(description: string, type: string): object {
  return { description, schema: { type } };
}

/** Returns the operation id: `getV1UsageByRequestId` for `GET /v1/usage/{requestId}`, `getRoot` for `GET /`. */
export function operationId(method: string, path: string): string {
  if (path === '/') return `${method.toLowerCase()}Root`;
  const words = path.split('/').flatMap((segment) => {
    const [, name] = /^\{(\w+)(?:\.\.\.)?\}$/.exec(segment) ?? [];
    return name === undefined ? segment.split(/[^A-Za-z0-9]+/) : ['by', name];
  });
  return method.toLowerCase() + words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
}

const TAG_DESCRIPTIONS: Readonly<Record<string, string>> = {
  models: 'Model calls, and the models that they can name.',
  service: 'The health and the description of the process.',
};

/** Returns the noun of a path: `accounts` for `/admin/v1/accounts/{id}`, `usage` for `/v1/usage.csv`. */
function tagOf(path: string): string {
  const [noun] = /(?<=\/v1\/)[a-z-]+/.exec(path) ?? ['service'];
  return noun;
}

/** Lists the tags of these paths' operations, as linters require. */
export function tagsOf(paths: Readonly<Record<string, object>>): readonly object[] {
  const operations = Object.values(paths).flatMap((path) => Object.values(path) as { readonly tags: string[] }[]);
  return [...new Set(operations.flatMap(({ tags }) => tags))].map((name) => ({
    name,
    description: TAG_DESCRIPTIONS[name] ?? `Routes below \`/v1/${name}\`.`,
  }));
}
