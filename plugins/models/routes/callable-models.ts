import type { IncomingMessage } from 'node:http';
import type { CallKey } from '../../../core/accounts/identify';
import { isAllowed, type Model } from '../../../core/catalog/catalog';
import { asksUpstream, pipelineAt } from '../../../core/gateway/asked-upstreams';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { routableEntries } from '../../../core/health/routable-entries';
import { hostOf } from '../../../core/http/request-target';
import { toJson } from './model';

export type Parts = Pick<PluginGateway, 'catalog' | 'configuration' | 'health'>;

const CALLS = ['/v1/messages', '/v1/chat/completions'];

/**
 * Returns what shows a model to this key at the addresses below `prefix`. A model that the key may not call or has no price for is not there for it, nor
 * is one that no pipeline of this address asks an upstream for: both are undefined. It is for one request, because the configuration
 * changes.
 */
export function callableModels(gateway: Parts, prefix: string, key: CallKey, request: IncomingMessage) {
  const { catalog, configuration, health } = gateway;
  const { allowedModels, markup } = key.settings;
  if (!catalog.customerPrices.has(markup)) return () => undefined;
  const priceOf = catalog.customerPrices.priceOf(markup);
  const pipelines = CALLS.map((path) => pipelineAt(configuration.pipelines, hostOf(request), prefix + path));
  const mayAsk = pipelines.flatMap((each) => (each === undefined ? [] : [asksUpstream(each)]));
  return (model: Model) => {
    const entries = routableEntries(model, health).filter(({ upstream }) => mayAsk.some((asks) => asks(upstream.name)));
    const isCallable = entries.length > 0 && isAllowed(catalog, entries, allowedModels);
    return isCallable ? toJson(model, entries, health, priceOf) : undefined;
  };
}
