import { mapValues } from '../../core/base/collections';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { ROLE_NAMES } from '../../core/operators/roles';
import { CALL_ERROR_SCHEMA, ERROR_SCHEMA, errorCatalogue, errorCodes } from './errors';
import { modelPaths, publicServer } from './model-calls';
import { CHAT_REQUEST, EMBEDDINGS_REQUEST, MESSAGES_REQUEST, RESPONSES_REQUEST } from './model-requests';
import { header, routePaths, tagsOf } from './own-paths';
import { toOpenApi } from './schema';

const LICENSE = { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' };

/** Builds the schemas anew for each document, because packages may have declared error codes after this file was loaded. */
const errorSchemas = () => ({ Error: ERROR_SCHEMA, ErrorCode: errorCodes() });

const PLATFORM_HEADERS = {
  Source: header('`platform`: the gateway created this answer; `provider`: an upstream did.', 'string'),
  RequestId: header('The request id; name it in questions to the operator.', 'string'),
};

/** Returns the OpenAPI document of the public listener: model calls as the pipelines serve them, and the plugins' endpoints. */
export function publicDocument(gateway: PluginGateway): object {
  const paths = { ...modelPaths(gateway.configuration), ...routePaths(gateway.routes(), 'public') };
  return {
    ...head('Tollgate', 'Model calls in two protocols over many upstreams, and what they cost.', gateway),
    servers: [publicServer()],
    tags: tagsOf(paths),
    paths,
    security: [{ apiKey: [] }, { bearer: [] }, { svcKey: [] }],
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        bearer: { type: 'http', scheme: 'bearer', description: 'The API key.' },
        svcKey: { type: 'apiKey', in: 'header', name: 'svc-key' },
      },
      headers: {
        ...PLATFORM_HEADERS,
        Repeats: header('The request id of the first call, whose stored answer this is.', 'string'),
        Provider: header('The upstream that served the call.', 'string'),
        Attempts: header('Number of attempts; above 1 after a failover.', 'integer'),
        Fallback: header('Whether another upstream than the first served it.', 'boolean'),
        Translated: header(
          '`true` if the call was translated into the protocol of the upstream; `true;weaker="tool_choice"` names what it was not held to.',
          'string',
        ),
        Cost: header('USD charged, 8 decimals; not on streams.', 'string'),
        Tokens: header('Tokens; not on streams.', 'integer'),
        Routing: header('The reasons of the routing decision as JSON, on request and for keys with `debug`.', 'string'),
      },
      schemas: mapValues(
        {
          ...errorSchemas(),
          CallError: CALL_ERROR_SCHEMA,
          MessagesRequest: MESSAGES_REQUEST,
          ChatRequest: CHAT_REQUEST,
          ResponsesRequest: RESPONSES_REQUEST,
          EmbeddingsRequest: EMBEDDINGS_REQUEST,
        },
        toOpenApi,
      ),
    },
  };
}

const TOKENS = `ADMIN_TOKEN, or an operator's token; \`x-role\` of each operation says of which role, or one after it: ${ROLE_NAMES.join(', ')}.`;

/** Returns the OpenAPI document of the admin listener. */
export function adminDocument(gateway: PluginGateway): object {
  const paths = routePaths(gateway.routes(), 'admin');
  return {
    ...head('Tollgate, for operators', 'Accounts, keys, money, upstreams and configuration.', gateway),
    servers: [{ url: '/' }],
    tags: tagsOf(paths),
    paths,
    security: [{ adminToken: [] }],
    components: {
      securitySchemes: { adminToken: { type: 'http', scheme: 'bearer', description: TOKENS } },
      headers: PLATFORM_HEADERS,
      schemas: mapValues(errorSchemas(), toOpenApi),
    },
  };
}

function head(title: string, description: string, { configRevision }: PluginGateway): object {
  return {
    openapi: '3.0.3',
    info: { title, version: '1', description, license: LICENSE, 'x-config-revision': configRevision },
    'x-errors': errorCatalogue(),
  };
}
