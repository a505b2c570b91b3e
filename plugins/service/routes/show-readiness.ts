import { setTimeout as sleep } from 'node:timers/promises';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { object, oneOf, shape } from '../../../core/http/shape';
import { remembered } from '../../../core/remembered';

export function showReadinessRoute(gateway: PluginGateway): Route {
  const readStores = remembered(STORES_FOR_MS, async () => ({
    ledger: await gateway.ledger.isReady().catch(() => false),
    database: await answers(gateway.database.raw('select 1')),
  }));
  return {
    listener: 'public',
    auth: 'none',
    method: 'GET',
    path: '/readyz',
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
  };
}

/** How long `/readyz` repeats its last check of the stores. It reports a stopping process at once. */
const STORES_FOR_MS = 1_000;

const DATABASE_PATIENCE_MS = 1_000;

/** Tells whether a query is answered. The database's state is shown but does not decide readiness, because calls work without it. */
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
