import type { Gateway } from '../../core/gateway';
import { definePlugin } from '../../core/plugin';
import { checkRollouts } from './check';
import { Engine } from './engine';
import { exposeRollouts } from './figures';
import { rolloutRoutes } from './routes';
import { ROLLOUTS, readRollouts } from './section';

/** The engines of the gateways of this process; there is one, and tests have several. */
const engines = new WeakMap<Gateway, Engine>();

/** Changes that go out in stages; docs/rollouts.md. */
export default definePlugin({
  name: 'rollouts',
  summary: 'Changes that go out in stages, are watched, and come back by themselves.',
  schema: { type: 'object', additionalProperties: false, properties: {} },
  sections: { rollouts: { schema: ROLLOUTS, check: checkRollouts, rollouts: readRollouts } },
  routes: (_settings, gateway) => {
    const engine = new Engine(gateway);
    engines.set(gateway, engine);
    return rolloutRoutes(gateway, engine);
  },
  start: async (_settings, gateway) => {
    const engine = engines.get(gateway);
    if (engine === undefined) throw new Error('the routes of the rollouts are made first');
    exposeRollouts(gateway, engine);
    return engine.start();
  },
});
