import { showUsd } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { listOf, object, orNull, shape } from '../../../core/http/shape';
import { formatUsd } from '../../../core/money';
import { heldByAll, MINUTES, type Minute, readMinutes, readOutbox } from '../now';

const MINUTE = object({
  start: shape.time,
  calls: shape.integer,
  failed: shape.integer,
  costUsd: shape.usd,
  p99Ms: { ...orNull(shape.integer), description: '99 of 100 calls were answered within it.' },
});

const NOW = object({
  at: shape.time,
  lately: { ...MINUTE, description: 'The last sixty seconds.' },
  minutes: { ...listOf(MINUTE), description: 'Oldest first; the last one is not over.' },
  heldUsd: orNull(shape.usd),
  outbox: object({ oldestSeconds: shape.number, memoryShare: shape.number }),
});

export function showNowRoute(gateway: PluginGateway): Route {
  const readCalls = readMinutes(gateway.database);
  const readHeld = heldByAll(gateway);
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/now',
    summary: `Calls of all nodes in each of the last ${MINUTES} minutes, the held amount, and what waits for Postgres.`,
    answers: {
      200: {
        description: '`heldUsd` is null while the ledger is unavailable, and with more than 2,000 accounts.',
        schema: NOW,
      },
    },
    handle: async (_visit, _request, response) => {
      const [{ lately, minutes }, heldE8, outbox] = await Promise.all([readCalls(), readHeld(), readOutbox()]);
      sendJson(response, 200, {
        at: new Date().toISOString(),
        lately: showMinute(lately),
        minutes: minutes.map(showMinute),
        heldUsd: showUsd(heldE8),
        outbox,
      });
    },
  };
}

function showMinute({ start, costE8, ...counts }: Minute) {
  return { start: start.toISOString(), ...counts, costUsd: formatUsd(costE8) };
}
