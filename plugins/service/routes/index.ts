import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { refuseCountTokensRoute } from './refuse-count-tokens';
import { sayHelloRoute } from './say-hello';
import { showCardRoute } from './show-card';
import { showHealthRoute } from './show-health';
import { showMetricsRoute } from './show-metrics';
import { showReadinessRoute } from './show-readiness';

/** Lists the endpoints of the service itself, one per file. */
export function serviceRoutes(gateway: PluginGateway): readonly Route[] {
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
