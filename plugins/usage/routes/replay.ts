import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { findProposal } from '../../../core/configuration/proposals/store';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { readTime, readUuid, required } from '../../../core/http/query';
import { listOf, object, shape } from '../../../core/http/shape';
import { replay, showSums } from '../replay';

const SUMS = {
  calls: { ...shape.integer, description: 'The charged calls.' },
  costUsd: { ...shape.usd, description: 'What they were charged.' },
  replayedUsd: { ...shape.usd, description: 'What they would have been charged.' },
};

const QUERY = { from: required(readTime), to: readTime, proposal: required(readUuid), account: readUuid };

export function replayRoute(gateway: Pick<PluginGateway, 'database' | 'configuration'>): Route {
  return adminRoute('GET /admin/v1/usage/replay', {
    role: 'read',
    summary: 'What the calls of a period would have cost with the prices of a proposal. No call is charged.',
    query: QUERY,
    answers: {
      200: {
        description: 'The sums in all, and by account and model.',
        schema: object({
          ...SUMS,
          items: listOf(object({ accountId: shape.uuid, model: shape.text, ...SUMS })),
        }),
      },
    },
    errors: ['NOT_FOUND'],
    handle: async ({ filters: { from, to, proposal, account } }) => {
      const { rows } = await findProposal(gateway.database, proposal);
      const counted = rows.filter(({ state }) => state === 'proposed' || state === 'accepted');
      const items = await replay(gateway.database, gateway.configuration, counted, { from, to, account });
      const all = { calls: 0, costE8: 0n, replayedE8: 0n };
      for (const { calls, costE8, replayedE8 } of items) {
        all.calls += calls;
        all.costE8 += costE8;
        all.replayedE8 += replayedE8;
      }
      const shown = items.map((item) => ({ accountId: item.accountId, model: item.model, ...showSums(item) }));
      return { ...showSums(all), items: shown };
    },
  });
}
