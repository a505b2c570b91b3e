import type { IncomingMessage } from 'node:http';
import { readAccount, readAccountRow } from '../../../core/accounts/accounts';
import { showUsd } from '../../../core/api/fields';
import { sessionRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { RATES_PER_MILLION, showMaxRates } from '../../../core/api/show-price';
import { callableIn, TIERS } from '../../../core/catalog/catalog';
import { FACTS, showFacts } from '../../../core/catalog/facts';
import { PROTOCOL_NAMES, PROTOCOLS } from '../../../core/catalog/protocols';
import { isAnyHost, type PipelineSettings } from '../../../core/configuration/pipelines';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { rounded, routableEntries, UPSTREAM_STATES, upstreamState } from '../../../core/health/state';
import { publicUrlOf } from '../../../core/http/public-url';
import { listOf, object, oneOf, orNull, shape } from '../../../core/http/shape';
import { readTimeZone } from '../../../core/records/time-zones';
import { EVERYONE } from '../../../core/sign-in/member-roles';
import { readSpending } from '../spending';

type OverviewContext = Pick<PluginGateway, 'catalog' | 'configuration' | 'health'>;

/** Shows the models that an account with this markup can call, their prices, the upstreams, and the addresses. Reads neither Redis nor Postgres. */
function showCatalog(
  { catalog, configuration, health }: OverviewContext,
  request: IncomingMessage,
  markup: string | undefined,
) {
  const nowMs = health.now();
  const { customerPrices } = catalog;
  const models = customerPrices.has(markup) ? catalog.models : [];
  return {
    publicUrl: publicUrlOf(request),
    strategies: strategiesOf(configuration.pipelines),
    models: models.flatMap((model) => {
      const entries = routableEntries(model, health);
      if (entries.length === 0) return [];
      const protocols = new Set(entries.flatMap(callableIn));
      return {
        name: model.name,
        aliases: model.aliases,
        protocols: [...protocols],
        context: Math.max(...entries.map((entry) => entry.model.context)),
        maxOutput: Math.max(...entries.map((entry) => entry.model.maxOutput)),
        upstreams: entries.map(({ upstream }) => upstream.name),
        facts: entries.map((entry) => showFacts(entry.upstream, entry.model)),
        pricePerMillion: showMaxRates(entries.map((entry) => customerPrices.priceOf(markup)(entry.model))),
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

/** The first part of a path that selects no routing strategy, as in `/default/v1/messages`. */
const DEFAULT = 'default';

/** Lists the call paths that exist without a strategy. Returns the strategies that are configured for each of these paths. */
function strategiesOf(pipelines: readonly Pick<PipelineSettings, 'endpoints'>[]): readonly string[] {
  const endpoints = pipelines.flatMap((pipeline) => pipeline.endpoints).filter(isAnyHost);
  const paths = new Set(endpoints.flatMap((endpoint) => endpoint.paths));
  const calls = PROTOCOL_NAMES.map((name) => PROTOCOLS[name].path).filter((path) => paths.has(path));
  const named = new Set([...paths].flatMap((path) => /^\/([^/]+)\/v1\//.exec(path)?.[1] ?? []));
  return [...named].filter((name) => name !== DEFAULT && calls.every((path) => paths.has(`/${name}${path}`)));
}

/** The members of the result of `showCatalog`. */
const CATALOG_FIELDS = {
  publicUrl: shape.text,
  strategies: shape.texts,
  models: listOf(
    object({
      name: shape.text,
      aliases: shape.texts,
      protocols: listOf(oneOf(...PROTOCOL_NAMES)),
      context: shape.integer,
      maxOutput: shape.integer,
      upstreams: shape.texts,
      facts: listOf(FACTS),
      pricePerMillion: RATES_PER_MILLION,
    }),
  ),
  upstreams: listOf(
    object({
      name: shape.text,
      tier: oneOf(...TIERS),
      state: oneOf(...UPSTREAM_STATES),
      successRate: orNull(shape.number),
      firstTokenMs: orNull(shape.number),
      models: shape.texts,
    }),
  ),
} satisfies Record<keyof ReturnType<typeof showCatalog>, object>;

const SPEND = object({
  todayUsd: shape.usd,
  yesterdayUsd: shape.usd,
  monthUsd: shape.usd,
  lastMonthUsd: shape.usd,
  lastMonthToThisDayUsd: shape.usd,
  days: listOf(
    object({
      day: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d$' },
      callsUsd: shape.usd,
      sandboxesUsd: shape.usd,
      calls: shape.integer,
    }),
  ),
} satisfies Record<keyof Awaited<ReturnType<typeof readSpending>>, object>);

const OVERVIEW = object({
  balanceUsd: orNull(shape.usd),
  heldUsd: orNull(shape.usd),
  availableUsd: orNull(shape.usd),
  timeZone: shape.text,
  spend: SPEND,
  ...CATALOG_FIELDS,
});

export function overviewRoutes(
  gateway: OverviewContext & Pick<PluginGateway, 'calls' | 'ledger' | 'database'>,
): readonly Route[] {
  return [
    sessionRoute('GET /console/api/overview', {
      roles: EVERYONE,
      summary: 'The balance, spending by day, and the models that can be called; a member sees its own spending.',
      query: { timeZone: readTimeZone },
      answers: {
        200: {
          description: 'The overview; the amounts are null while the ledger is unavailable, and for a member.',
          schema: OVERVIEW,
        },
      },
      handle: async ({ accountId, memberId, filters: { timeZone = 'UTC' } }, request) => {
        const [account, spend] = await Promise.all([
          readAccount(gateway, accountId),
          readSpending(gateway.database, { accountId, memberId }, timeZone),
        ]);
        const { markup } = account;
        const money = memberId === undefined ? account.money : undefined;
        return {
          balanceUsd: showUsd(money?.postedE8),
          heldUsd: showUsd(money?.heldE8),
          availableUsd: showUsd(money?.availableE8),
          timeZone,
          spend,
          ...showCatalog(gateway, request, markup),
        };
      },
    }),
    sessionRoute('GET /console/api/catalog', {
      roles: EVERYONE,
      summary: 'The models and upstreams, for lists to choose from.',
      answers: { 200: { description: 'The catalog.', schema: object(CATALOG_FIELDS) } },
      handle: async ({ accountId }, request) => {
        const { markup } = await readAccountRow(gateway.database, accountId);
        return showCatalog(gateway, request, markup ?? undefined);
      },
    }),
  ];
}
