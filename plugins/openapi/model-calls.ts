import type { ErrorCode } from '../../core/base/errors';
import { TAGS_DESCRIPTION, TAGS_HEADER } from '../../core/calls/tags';
import { hasOutput, isSocketPath, PROTOCOLS, protocolOf } from '../../core/catalog/protocols';
import type { Configuration } from '../../core/configuration/configuration';
import { type EndpointSettings, isAnyHost, type PipelineSettings } from '../../core/configuration/pipelines';
import { saidPublicUrl } from '../../core/http/public-url';
import { tokenBilling } from './billing';
import { errorResponse, errorResponses } from './errors';
import { operationId } from './own-paths';
import { toOpenApi } from './schema';

/** A path of a pipeline's endpoint. */
interface ModelPath {
  readonly path: string;
  readonly pipeline: PipelineSettings;
  readonly endpoint: EndpointSettings;
}

/** Describes the paths of model calls. A path that exists only on some hosts lists their addresses in `servers`. */
export function modelPaths(configuration: Configuration): Record<string, object> {
  const all = configuration.pipelines.flatMap((pipeline) =>
    pipeline.endpoints.flatMap((endpoint) => endpoint.paths.map((path): ModelPath => ({ path, pipeline, endpoint }))),
  );
  const paths: Record<string, object> = {};
  for (const path of new Set(all.map((each) => each.path))) {
    const here = all.filter((each) => each.path === path);
    const aggregate = here.find(({ endpoint }) => isAnyHost(endpoint)) ?? here[0];
    if (aggregate === undefined) continue;
    const hosts = here.flatMap(({ endpoint }) => (isAnyHost(endpoint) ? [] : [endpoint.host ?? '']));
    const methods = aggregate.endpoint.methods ?? ['POST'];
    paths[path] = Object.fromEntries(
      methods.map((method) => [method.toLowerCase(), modelOperation(configuration, aggregate, method, hosts)]),
    );
  }
  return paths;
}

function modelOperation(
  { catalog, gateway: { http } }: Configuration,
  { path, pipeline, endpoint }: ModelPath,
  method: string,
  hosts: readonly string[],
): object {
  const protocol = protocolOf(path);
  const { title } = PROTOCOLS[protocol];
  const isStreamed = hasOutput(protocol);
  return {
    operationId: operationId(method, path),
    summary: `A model call in the ${title} protocol (${pipeline.name}).`,
    ...(isSocketPath(path) && { description: OVER_SOCKET }),
    tags: ['models'],
    ...(hosts.length > 0 && {
      servers: [
        ...(isAnyHost(endpoint) ? [publicServer()] : []),
        ...hosts.map((host) => directServer(host, http.port)),
      ],
    }),
    parameters: [DEBUG, IDEMPOTENCY_KEY, TAGS, REQUIRE],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: `#/components/schemas/${title}Request` } } },
    },
    responses: {
      200: {
        description: isStreamed
          ? "The upstream's answer; an event stream when `stream` is true."
          : "The upstream's answer.",
        headers: ANSWER_HEADERS,
        content: {
          'application/json': { schema: toOpenApi({ type: 'object' }) },
          ...(isStreamed && { 'text/event-stream': { schema: { type: 'string' } } }),
        },
      },
      ...errorResponses(MODEL_CALL_ERRORS, 'CallError', ['NOT_SUPPORTED']),
      default: errorResponse("An upstream's error or redirect, relayed with its status.", 'CallError'),
    },
    'x-billing': tokenBilling(catalog, path, pipeline),
  };
}

const OVER_SOCKET =
  'GET at this address with `Upgrade: websocket` opens a WebSocket. Each text frame `{"type":"response.create",…}` on it is one such call, one after the other. The events of its answer come as frames; a refusal is one frame `{"type":"error","status":…,"error":{…}}`.';

const DEBUG = {
  name: 'x-tollgate-debug',
  in: 'header',
  description: 'Requests the reasons of the routing decision; ignored for keys without `debug`.',
  schema: { type: 'string', enum: ['routing'] },
};

const IDEMPOTENCY_KEY = {
  name: 'idempotency-key',
  in: 'header',
  description:
    'Makes a retry of the call safe: one key is charged once at most. The gateway remembers it for 10 minutes after the call.',
  schema: { type: 'string', minLength: 1, maxLength: 160 },
};

const TAGS = { name: TAGS_HEADER, in: 'header', description: TAGS_DESCRIPTION, schema: { type: 'string' } };

const REQUIRE = {
  name: 'x-svc-require',
  in: 'header',
  description:
    'What the call demands of the upstreams that may serve it, with `;` between: `region=eu,us`, `retention=none` or days, `trains=no`, `max-input-price` and `max-output-price` in USD per million tokens, `context` in tokens.',
  schema: { type: 'string', example: 'region=eu; retention=none; trains=no' },
};

const ANSWER_HEADERS = Object.fromEntries(
  [
    ['X-SVC-Source', 'Source'],
    ['X-SVC-Request-Id', 'RequestId'],
    ['X-SVC-Repeats', 'Repeats'],
    ['X-Routing-Provider', 'Provider'],
    ['X-Routing-Attempts', 'Attempts'],
    ['X-Routing-Fallback', 'Fallback'],
    ['X-Routing-Translated', 'Translated'],
    ['X-AI-Cost', 'Cost'],
    ['X-AI-Tokens-Input', 'Tokens'],
    ['X-AI-Tokens-Output', 'Tokens'],
    ['X-AI-Tokens-Total', 'Tokens'],
    ['X-Tollgate-Routing', 'Routing'],
  ].map(([header, component]) => [header, { $ref: `#/components/headers/${component}` }]),
);

const MODEL_CALL_ERRORS: readonly ErrorCode[] = [
  'INVALID_JSON',
  'INVALID_FIELD',
  'MODEL_NOT_PRICED',
  'MODEL_AMBIGUOUS',
  'MODEL_NOT_ALLOWED',
  'TOO_MANY_LIMITED_TAGS',
  'NO_CANDIDATE_ALLOWED',
  'MODEL_NOT_SUPPORTED',
  'NOT_TRANSLATABLE',
  'IDEMPOTENCY_KEY_INVALID',
  'IDEMPOTENCY_CONFLICT',
  'IDEMPOTENCY_KEY_IN_USE',
  'ALREADY_CHARGED',
  'INVALID_API_KEY',
  'API_KEY_EXPIRED',
  'ADDRESS_NOT_ALLOWED',
  'INSUFFICIENT_BALANCE',
  'KEY_LIMIT_EXCEEDED',
  'BUDGET_EXCEEDED',
  'FORBIDDEN',
  'NOT_FOUND',
  'KEPT_OBJECT_NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'BODY_TIMEOUT',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'UPSTREAM_RATE_LIMITED',
  'KEY_RATE_LIMITED',
  'TOO_MANY_TAGS',
  'CONCURRENCY_LIMIT',
  'INTERNAL_ERROR',
  'ALL_PROVIDERS_FAILED',
  'LEDGER_UNAVAILABLE',
  'DATABASE_UNAVAILABLE',
  'OVERLOADED',
  'DRAINING',
  'UPSTREAM_TIMEOUT',
];

/** Returns the address of the public listener: `PUBLIC_URL`, or else the address at which the document was read. */
export function publicServer(): object {
  return { url: saidPublicUrl() ?? '/' };
}

/**
 * Returns the OpenAPI server of a direct route, with the scheme and port of `PUBLIC_URL`. The first label of its host names the upstream
 * that serves the calls.
 */
function directServer(host: string, listenerPort: number): object {
  const said = saidPublicUrl() ?? '';
  const { protocol, port } = new URL(URL.canParse(said) ? said : `http://localhost:${listenerPort}`);
  const url = `${protocol}//${host.replace('*', '{upstream}')}${port === '' ? '' : `:${port}`}`;
  if (!host.includes('*')) return { url };
  const description = 'A direct address: it pins one upstream.';
  return { url, description, variables: { upstream: { default: 'upstream' } } };
}
