import { fail } from '../../core/errors';
import { sendJson } from '../../core/http';
import { metrics } from '../../core/metrics';
import { definePlugin, type Route } from '../../core/plugin';
import { remembered } from '../../core/remembered';
import { object, oneOf, shape } from '../../core/shape';

const NOT_OFFERED = ['/v1/messages/count_tokens', '/{strategy}/v1/messages/count_tokens'] as const;

export default definePlugin({
  name: 'service',
  summary: 'The service about itself: card, health, readiness, and what of the protocols is not offered.',
  schema: { type: 'object', properties: {} },
  routes: (_, gateway): readonly Route[] => {
    const readStores = remembered(STORES_FOR_MS, async () => ({
      ledger: await gateway.ledger.isReady().catch(() => false),
      database: await answers(gateway.database.raw('select 1')),
    }));
    return [
      {
        listener: 'public',
        auth: 'none',
        method: 'GET',
        path: '/',
        summary: 'A short card of the service.',
        answers: {
          200: {
            description: 'The card.',
            schema: object({
              name: shape.text,
              protocols: shape.texts,
              models: shape.text,
              document: shape.text,
              health: shape.text,
              ready: shape.text,
            }),
          },
        },
        handle: async (_visit, _request, response) => {
          sendJson(response, 200, {
            name: 'Tollgate',
            protocols: ['messages', 'chat'],
            models: '/v1/models',
            document: '/openapi.json',
            health: '/healthz',
            ready: '/readyz',
          });
        },
      },
      {
        listener: 'public',
        auth: 'none',
        method: 'GET',
        path: '/api/hello',
        summary: 'Answers the connectivity check of agents.',
        answers: { 200: { description: 'The service can be reached.', schema: object({ message: oneOf('hello') }) } },
        handle: async (_visit, _request, response) => sendJson(response, 200, { message: 'hello' }),
      },
      {
        listener: 'public',
        auth: 'none',
        method: 'GET',
        path: '/healthz',
        inWorkers: true,
        summary: 'Says that the process is alive.',
        answers: { 200: { description: 'It is alive.', schema: object({ status: oneOf('alive') }) } },
        handle: async (_visit, _request, response) => sendJson(response, 200, { status: 'alive' }),
      },
      {
        listener: 'public',
        auth: 'none',
        method: 'GET',
        path: '/readyz',
        inWorkers: true,
        summary: 'Says whether calls can be taken.',
        answers: {
          200: { description: 'They can.', schema: READINESS },
          503: { description: 'They cannot, for now.', schema: READINESS },
        },
        handle: async (_visit, _request, response) => {
          const { ledger, database } = await readStores();
          const draining = gateway.isDraining();
          const outbox = !gateway.isOutboxFull();
          const ready = ledger && outbox && !draining;
          sendJson(
            response,
            ready ? 200 : 503,
            {
              status: ready ? 'ready' : 'not ready',
              checks: { ledger: state(ledger), outbox: outbox ? 'ok' : 'full', database: state(database), draining },
            },
            ready ? {} : { 'retry-after': '1' },
          );
        },
      },
      {
        listener: 'admin',
        method: 'GET',
        path: '/metrics',
        inWorkers: true,
        summary: "What the process counts and measures, in Prometheus' text format.",
        answers: { 200: { description: 'The metrics.', schema: shape.text, mediaType: 'text/plain' } },
        handle: async (_visit, _request, response) => {
          response.writeHead(200, { 'content-type': metrics.contentType });
          response.end(await metrics.metrics());
        },
      },
      ...NOT_OFFERED.map(
        (path): Route => ({
          listener: 'public',
          auth: 'none',
          method: '*',
          anyHost: true,
          path,
          summary: 'Counting tokens is not offered.',
          answers: {},
          errors: ['ENDPOINT_NOT_IMPLEMENTED'],
          handle: async () => {
            throw fail('ENDPOINT_NOT_IMPLEMENTED', { message: 'Counting tokens is not offered here.' });
          },
        }),
      ),
    ];
  },
});

/** So old may be what `/readyz` says of the stores; that the process stops is told at once. */
const STORES_FOR_MS = 1_000;

const DATABASE_PATIENCE_MS = 1_000;

/** The database's state is shown, not decisive: calls go on without it. */
function answers(query: PromiseLike<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const patience = setTimeout(resolve, DATABASE_PATIENCE_MS, false);
    const answer = (value: boolean) => {
      clearTimeout(patience);
      resolve(value);
    };
    query.then(
      () => answer(true),
      () => answer(false),
    );
  });
}

function state(ok: boolean): 'ok' | 'unavailable' {
  return ok ? 'ok' : 'unavailable';
}

const CHECK = oneOf('ok', 'unavailable');

const READINESS = object({
  status: oneOf('ready', 'not ready'),
  checks: object({ ledger: CHECK, outbox: oneOf('ok', 'full'), database: CHECK, draining: shape.yes }),
});
