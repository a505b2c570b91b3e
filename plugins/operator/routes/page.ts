import { pageRoutes } from '../../../core/api/built-page';
import { showUsd } from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { formatUsd } from '../../../core/base/money';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { PAGE_READERS, pageOf, readText, readTime } from '../../../core/http/query';
import { listOf, object, orNull, pageShape, shape } from '../../../core/http/shape';
import { listAudit } from '../../../core/storage/audit';
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

function showMinute({ start, costE8, ...counts }: Minute) {
  return { start: start.toISOString(), ...counts, costUsd: formatUsd(costE8) };
}

const CHANGE = object({
  id: shape.uuid,
  createdAt: shape.time,
  actor: shape.text,
  action: shape.text,
  subject: shape.text,
  before: orNull({ type: 'object' }),
  after: orNull({ type: 'object' }),
});

export function operatorPageRoutes(gateway: PluginGateway): readonly Route[] {
  const { database } = gateway;
  const readCalls = readMinutes(database);
  const readHeld = heldByAll(gateway);
  return [
    adminRoute('GET /admin/v1/audit', {
      role: 'read',
      summary: 'Who changed what, newest first; filters subject (`key:<id>`), actor, action, from, to.',
      query: { subject: readText, actor: readText, action: readText, from: readTime, to: readTime, ...PAGE_READERS },
      answers: { 200: { description: 'A page of changes.', schema: pageShape(CHANGE) } },
      handle: ({ filters }) => listAudit(database, filters, pageOf(filters)),
    }),
    adminRoute('GET /admin/v1/now', {
      role: 'read',
      summary: `Calls of all nodes in each of the last ${MINUTES} minutes, the held amount, and what waits for Postgres.`,
      answers: {
        200: {
          description: '`heldUsd` is null while the ledger is unavailable, and with more than 2,000 accounts.',
          schema: NOW,
        },
      },
      handle: async () => {
        const [{ lately, minutes }, heldE8, outbox] = await Promise.all([readCalls(), readHeld(), readOutbox()]);
        return {
          at: new Date().toISOString(),
          lately: showMinute(lately),
          minutes: minutes.map(showMinute),
          heldUsd: showUsd(heldE8),
          outbox,
        };
      },
    }),
    ...pageRoutes('operator', 'admin', "The operator's page."),
  ];
}
