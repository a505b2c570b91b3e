import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Handler, Route } from '../../core/api/route';
import type { Configuration } from '../../core/configuration/configuration';
import { definePlugin } from '../../core/gateway/plugin';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { contentTag } from '../../core/http/etag';
import { shape } from '../../core/http/shape';
import { adminDocument, publicDocument } from './document';

/** The OpenAPI documents of the loaded configuration and plugins; docs/contract.md, section 1.3. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'openapi',
  summary: 'The OpenAPI documents of both listeners, as the configuration in force makes them.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway) => documentRoutes(gateway),
});

/** Lists the endpoints that serve the OpenAPI documents; docs/contract.md, section 1. */
function documentRoutes(gateway: PluginGateway): readonly Route[] {
  return [showDocumentRoute(gateway, 'public'), showDocumentRoute(gateway, 'admin')];
}

/** A JSON answer that is the same for all clients until the configuration changes. */
interface PreparedText {
  readonly bytes: Buffer;
  readonly etag: string;
}

function prepareText(value: object): PreparedText {
  const bytes = Buffer.from(JSON.stringify(value));
  return { bytes, etag: contentTag(bytes) };
}

/** Sends the answer, or 304 if the client's ETag matches. Pages of any origin may read it, because it contains no secret. */
function sendPrepared(request: IncomingMessage, response: ServerResponse, { bytes, etag }: PreparedText): void {
  const headers = { etag, 'cache-control': 'no-cache', 'access-control-allow-origin': '*' };
  const known = request.headers['if-none-match']?.split(',').map((each) => each.trim().replace(/^W\//, '')) ?? [];
  if (known.includes(etag) || known.includes('*')) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  response.writeHead(200, { ...headers, 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(bytes);
}

/** Serves the document of a listener. Both listeners have this endpoint, and each describes its own routes. */
function showDocumentRoute(gateway: PluginGateway, listener: Route['listener']): Route {
  const said = { method: 'GET', summary: 'This document.', answers: ANSWERS } as const;
  return listener === 'public'
    ? { ...said, listener, auth: 'none', path: '/openapi.json', handle: serve(gateway, publicDocument) }
    : { ...said, listener, role: 'read', path: '/admin/v1/openapi.json', handle: serve(gateway, adminDocument) };
}

const ANSWERS = {
  200: { description: 'An OpenAPI 3.0 document.', schema: { ...shape.any, type: 'object' } },
  304: { description: 'The document is the one that `If-None-Match` names.' },
} as const;

/** Serves an OpenAPI document. It is built once per configuration, at the first request. */
function serve(gateway: PluginGateway, build: (gateway: PluginGateway) => object): Handler {
  const built = new WeakMap<Configuration, PreparedText>();
  return async (_visit, request, response) => {
    const { configuration } = gateway;
    let text = built.get(configuration);
    if (text === undefined) {
      text = prepareText(build(gateway));
      built.set(configuration, text);
    }
    sendPrepared(request, response, text);
  };
}
