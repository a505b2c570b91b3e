import { definePlugin } from '../../core/gateway/plugin';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { checkRollouts } from './check';
import { RolloutEngine } from './engine';
import { rolloutRoutes } from './routes';
import { ROLLOUTS, readRollouts } from './section';
import { exposeRollouts } from './show';
import { skippedStages } from './skipped';
import { readRows } from './store';

/** The engine of each gateway in this process. Only tests run several gateways in one process. */
const engines = new WeakMap<PluginGateway, RolloutEngine>();

/** Rollouts: changes that reach callers in stages; docs/rollouts.md. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'rollouts',
  summary: 'Changes that are rolled out in stages, guarded, and rolled back automatically.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  sections: { rollouts: { schema: ROLLOUTS, check: checkRollouts, rollouts: readRollouts } },
  routes: (_settings, gateway) => {
    const engine = new RolloutEngine(gateway);
    engines.set(gateway, engine);
    return rolloutRoutes(gateway, engine);
  },
  start: async (_settings, gateway) => {
    const engine = engines.get(gateway);
    if (engine === undefined) throw new Error('the rollouts plugin must create its routes before it starts');
    exposeRollouts(gateway, engine);
    gateway.changeChecks.push(async (before, next) => {
      const rows = await readRows(gateway.database);
      return skippedStages(before, next, (name) => rows.get(name));
    });
    return engine.start();
  },
});
