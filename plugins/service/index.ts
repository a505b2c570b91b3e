import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { openRoute } from '../../core/api/json-routes';
import type { Route } from '../../core/api/route';
import { cacheFor } from '../../core/base/cache-for';
import { fail } from '../../core/base/errors';
import { showMetrics } from '../../core/base/metrics';
import { PROTOCOL_NAMES } from '../../core/catalog/protocols';
import { definePlugin } from '../../core/gateway/plugin';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { sendJson } from '../../core/http/http';
import { object, oneOf, shape } from '../../core/http/shape';

export default definePlugin({
  contract: 'plugin/1',
  name: 'service',
  summary:
    'Card, health, readiness and metrics of the service, and endpoints of the protocols that it does not implement.',
  schema: { type: 'object', properties: {} },
  routes: (_settings, gateway) => serviceRoutes(gateway),
});

/** Lists the endpoints for the health and metrics of the gateway itself. */
function serviceRoutes(gateway: PluginGateway): readonly Route[] {
  return [
    showCardRoute(),
    sayHelloRoute(),
    showHealthRoute(),
    showReadinessRoute(gateway),
    showMetricsRoute(),
    refuseCountTokensRoute('/v1/messages/count_tokens'),
    refuseCountTokensRoute('/{strategy}/v1/messages/count_tokens'),
  ];
}

function sayHelloRoute(): Route {
  return openRoute('GET /api/hello', {
    summary: 'Answers the connectivity check of agents.',
    answers: { 200: { description: 'The service can be reached.', schema: object({ message: oneOf('hello') }) } },
    handle: async () => ({ message: 'hello' }),
  });
}

function showCardRoute(): Route {
  return openRoute('GET /', {
    summary: 'A short card of the service.',
    answers: { 200: { description: 'The card.', schema: CARD } },
    handle: async () => ({
      name: 'Tollgate',
      protocols: PROTOCOL_NAMES,
      models: '/v1/models',
      document: '/openapi.json',
      health: '/healthz',
      ready: '/readyz',
    }),
  });
}

const CARD = object({
  name: shape.text,
  protocols: shape.texts,
  models: shape.text,
  document: shape.text,
  health: shape.text,
  ready: shape.text,
});

function showHealthRoute(): Route {
  return openRoute('GET /healthz', {
    inWorkers: true,
    isAskedOften: true,
    summary: 'Reports that the process is alive.',
    answers: { 200: { description: 'The process is alive.', schema: object({ status: oneOf('alive') }) } },
    handle: async () => ({ status: 'alive' }),
  });
}

function showMetricsRoute(): Route {
  return {
    listener: 'admin',
    role: 'metrics',
    method: 'GET',
    path: '/metrics',
    inWorkers: true,
    isAskedOften: true,
    summary: "The metrics of the process in Prometheus' text format, or in OpenMetrics if `Accept` asks for it.",
    answers: { 200: { description: 'The metrics.', schema: shape.text, mediaType: 'text/plain' } },
    handle: async (_visit, { headers: { accept } }, response) => {
      // A scraper that accepts OpenMetrics prefers it to Prometheus' format, so the order in the `Accept` header does not matter.
      const isOpenMetrics = accept?.includes('application/openmetrics-text') === true;
      const format = isOpenMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
      const text = await showMetrics(format);
      response.writeHead(200, { 'content-type': format });
      response.end(text);
    },
  };
}

/** Returns the route that rejects `count_tokens`, the one protocol endpoint that the gateway lacks. Clients call it below each base address. */
function refuseCountTokensRoute(path: `${string}/v1/messages/count_tokens`): Route {
  return {
    listener: 'public',
    auth: 'none',
    method: '*',
    anyHost: true,
    path,
    summary: 'Refuses token counting, which is not implemented.',
    answers: {},
    errors: ['ENDPOINT_NOT_IMPLEMENTED'],
    handle: async () => {
      throw fail('ENDPOINT_NOT_IMPLEMENTED', { message: 'This gateway does not implement token counting.' });
    },
  };
}

function showReadinessRoute(gateway: PluginGateway): Route {
  const readStores = cacheFor(STORES_FOR_MS, async () => ({
    ledger: await gateway.ledger.isReady().catch(() => false),
    database: await answers(gateway.database.raw('select 1')),
  }));
  return openRoute('GET /readyz', {
    inWorkers: true,
    isAskedOften: true,
    summary: 'Reports whether the process accepts calls.',
    answers: {
      200: { description: 'They can.', schema: READINESS },
      503: { description: 'The process accepts no calls at the moment.', schema: READINESS },
    },
    handle: async (_visit, _request, response) => {
      const { ledger, database } = await readStores();
      const stopping = gateway.isStopping();
      const outbox = !gateway.isOutboxFull();
      const ready = ledger && outbox && !stopping;
      sendJson(
        response,
        ready ? 200 : 503,
        {
          status: ready ? 'ready' : 'not ready',
          checks: {
            ledger: state(ledger),
            outbox: outbox ? 'ok' : 'full',
            database: state(database),
            draining: stopping,
          },
        },
        ready ? {} : { 'retry-after': '1' },
      );
    },
  });
}

/** How long `/readyz` reuses its last check of the stores, in milliseconds. It reports a stopping process at once. */
const STORES_FOR_MS = 1_000;

const DATABASE_PATIENCE_MS = 1_000;

/** Returns whether the store answers a query. `/readyz` shows the database's state, but calls work without it, so it does not decide readiness. */
function answers(query: PromiseLike<unknown>): Promise<boolean> {
  const answered = query.then(
    () => true,
    () => false,
  );
  return Promise.race([answered, sleep(DATABASE_PATIENCE_MS, false, { ref: false })]);
}

function state(ok: boolean): 'ok' | 'unavailable' {
  return ok ? 'ok' : 'unavailable';
}

const CHECK = oneOf('ok', 'unavailable');

const READINESS = object({
  status: oneOf('ready', 'not ready'),
  checks: object({ ledger: CHECK, outbox: oneOf('ok', 'full'), database: CHECK, draining: shape.yes }),
});
