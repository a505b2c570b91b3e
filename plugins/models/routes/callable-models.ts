import type { IncomingMessage } from 'node:http';
import type { CallKey } from '../../../core/accounts/identify';
import { isAllowed, type Model } from '../../../core/catalog/catalog';
import { PROTOCOL_NAMES, PROTOCOLS } from '../../../core/catalog/protocols';
import { asksUpstream, pipelineAt, protocolsAt } from '../../../core/gateway/asked-upstreams';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { routableEntries } from '../../../core/health/routable-entries';
import { hostOf } from '../../../core/http/request-target';
import { toJson } from './model';

export type Parts = Pick<PluginGateway, 'catalog' | 'configuration' | 'health'>;

/**
 * Returns a function that shows a model to this key at the addresses below `prefix`. The function returns undefined for a model
 * that the key may not call or for which it has no price. It does the same if no pipeline of the address asks an upstream for the
 * model. Use it for one request only, because the configuration changes.
 */
export function callableModels(gateway: Parts, prefix: string, key: CallKey, request: IncomingMessage) {
  const { catalog, configuration, health } = gateway;
  const { allowedModels, markup } = key.settings;
  if (!catalog.customerPrices.has(markup)) return () => undefined;
  const priceOf = catalog.customerPrices.priceOf(markup);
  const served = PROTOCOL_NAMES.flatMap((protocol) => {
    const pipeline = pipelineAt(configuration.pipelines, hostOf(request), prefix + PROTOCOLS[protocol].path);
    return pipeline === undefined ? [] : [{ protocol, pipeline, asks: asksUpstream(pipeline) }];
  });
  return (model: Model) => {
    const entries = routableEntries(model, health).filter((entry) =>
      served.some(
        ({ protocol, pipeline, asks }) => asks(entry.upstream.name) && protocolsAt(pipeline, entry).includes(protocol),
      ),
    );
    const isCallable = entries.length > 0 && isAllowed(catalog, entries, allowedModels);
    return isCallable ? toJson(model, entries, health, priceOf) : undefined;
  };
}
