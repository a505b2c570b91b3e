import type { Configuration } from '../../core/configuration';
import type { Gateway } from '../../core/gateway';
import { definePlugin, type Handler, type Route } from '../../core/plugin';
import { shape } from '../../core/shape';
import { adminDocument, publicDocument } from './document';
import { type PreparedText, prepareText, sendPrepared } from './prepared-text';

/** The interface of what is loaded, in words for programs; contract section 1. */
export default definePlugin({
  name: 'openapi',
  summary: 'The OpenAPI documents of both listeners, as the configuration in force makes them.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  routes: (_settings, gateway): readonly Route[] => [
    {
      listener: 'public',
      auth: 'none',
      method: 'GET',
      path: '/openapi.json',
      summary: 'This document.',
      answers: ANSWERS,
      handle: serve(gateway, publicDocument),
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/openapi.json',
      summary: 'This document.',
      answers: ANSWERS,
      handle: serve(gateway, adminDocument),
    },
  ],
});

const ANSWERS = {
  200: { description: 'An OpenAPI 3.0 document.', schema: { ...shape.any, type: 'object' } },
  304: { description: 'It is the one that `If-None-Match` names.' },
} as const;

/** Built once for each configuration, when it is first asked for. */
function serve(gateway: Gateway, build: (gateway: Gateway) => object): Handler {
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
