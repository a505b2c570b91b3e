import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import type { Engine } from '../engine';
import { listRolloutsRoute } from './list-rollouts';
import { orderRolloutRoute } from './order-rollout';
import { showRolloutRoute } from './show-rollout';

/** Lists the endpoints of rollouts, one per file. */
export function rolloutRoutes(gateway: PluginGateway, engine: Engine): readonly Route[] {
  return [
    listRolloutsRoute(gateway),
    showRolloutRoute(gateway),
    orderRolloutRoute(gateway, engine, 'pause'),
    orderRolloutRoute(gateway, engine, 'resume'),
    orderRolloutRoute(gateway, engine, 'promote'),
    orderRolloutRoute(gateway, engine, 'rollback'),
  ];
}
