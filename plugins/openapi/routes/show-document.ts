import type { Handler, Route } from '../../../core/api/route';
import type { Configuration } from '../../../core/configuration/configuration';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { shape } from '../../../core/http/shape';
import { adminDocument, publicDocument } from '../document';
import { type PreparedText, prepareText, sendPrepared } from './prepared-text';

/** Serves the document of a listener. Both listeners have this endpoint, and each describes its own routes. */
export function showDocumentRoute(gateway: PluginGateway, listener: Route['listener']): Route {
  const said = { method: 'GET', summary: 'This document.', answers: ANSWERS } as const;
  return listener === 'public'
    ? { ...said, listener, auth: 'none', path: '/openapi.json', handle: serve(gateway, publicDocument) }
    : { ...said, listener, role: 'read', path: '/admin/v1/openapi.json', handle: serve(gateway, adminDocument) };
}

const ANSWERS = {
  200: { description: 'An OpenAPI 3.0 document.', schema: { ...shape.any, type: 'object' } },
  304: { description: 'The document is the one that `If-None-Match` names.' },
} as const;

/** Serves the document, which is built once per configuration, at the first request. */
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
