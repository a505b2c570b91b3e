import type { IncomingMessage } from 'node:http';
import { sessionRoute } from '../../core/console-route';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { publicUrlOf } from '../../core/public-url';
import { routableEntries } from '../../core/routable-entries';
import { showDearestRates } from '../../core/show-price';
import { rounded, upstreamState } from '../../core/upstream-state';

type Parts = Pick<Gateway, 'catalog' | 'health'>;

export function catalogRoute(gateway: Parts): Route {
  return sessionRoute('GET', '/catalog', async (_visit, request, response) => {
    sendJson(response, 200, showCatalog(gateway, request));
  });
}

/** What can be called, where it goes, and how it is reached; asks no store. */
export function showCatalog({ catalog, health }: Parts, request: IncomingMessage) {
  const nowMs = health.now();
  return {
    publicUrl: publicUrlOf(request),
    models: catalog.models.flatMap((model) => {
      const entries = routableEntries(model, health);
      if (entries.length === 0) return [];
      const protocols = new Set(entries.flatMap(({ upstream }) => upstream.adapters.flatMap((each) => each.protocols)));
      return {
        name: model.name,
        aliases: model.aliases,
        protocols: [...protocols],
        context: Math.max(...entries.map((entry) => entry.model.context)),
        maxOutput: Math.max(...entries.map((entry) => entry.model.maxOutput)),
        upstreams: entries.map(({ upstream }) => upstream.name),
        pricePerMillion: showDearestRates(entries.map((entry) => entry.model.price)),
      };
    }),
    upstreams: catalog.upstreams.map((upstream) => {
      const gauge = health.upstream(upstream.name);
      return {
        name: upstream.name,
        tier: upstream.tier,
        state: upstreamState(upstream, gauge, nowMs),
        successRate: gauge.answers === 0 && gauge.failures.size === 0 ? null : rounded(1 - gauge.failureRate(nowMs), 3),
        firstTokenMs: rounded(gauge.latencies.stream.value),
        models: catalog.models
          .filter(({ entries }) => entries.some((entry) => entry.upstream === upstream))
          .map(({ name }) => name),
      };
    }),
  };
}
