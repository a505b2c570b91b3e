import type { IncomingMessage } from 'node:http';
import type { CallKey } from '../../core/accounts/identify';
import { keyRoute } from '../../core/api/json-routes';
import type { Route } from '../../core/api/route';
import { maxPrice } from '../../core/api/show-price';
import { mapValues } from '../../core/base/collections';
import { fail } from '../../core/base/errors';
import { isAllowed, type Model } from '../../core/catalog/catalog';
import type { PriceOf } from '../../core/catalog/customer-prices';
import { FACTS, showFacts } from '../../core/catalog/facts';
import { PATH_PREFIXES, PROTOCOL_NAMES, PROTOCOLS } from '../../core/catalog/protocols';
import { asksUpstream, pipelineAt, protocolsAt } from '../../core/gateway/pipeline-upstreams';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import type { UpstreamHealth } from '../../core/health/health';
import { routableEntries } from '../../core/health/state';
import { sendJson } from '../../core/http/http';
import { hostOf } from '../../core/http/request-head';
import { listOf, mapOf, object, objectWith, oneOf, orNull, shape } from '../../core/http/shape';
import { LIMITED_METERS } from '../../core/protocols/request-tables';
import { MODELS_QUERY, pageOfModels, readModelsQuery } from './page';

type ModelsContext = Pick<PluginGateway, 'catalog' | 'configuration' | 'health'>;

/**
 * Returns a function that shows a model to this key at the addresses below `prefix`. The function returns undefined for a model that the
 * key may not call or that has no price. It also returns undefined if no pipeline of these addresses calls an upstream for the model. Use
 * it for one request only, because the configuration changes.
 */
function callableModels(gateway: ModelsContext, prefix: string, key: CallKey, request: IncomingMessage) {
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

/** Lists the endpoints of models; docs/contract.md, section 1. */
export function modelRoutes(gateway: ModelsContext): readonly Route[] {
  return PATH_PREFIXES.flatMap((prefix) => [listModelsRoute(gateway, prefix), showModelRoute(gateway, prefix)]);
}

function listModelsRoute(gateway: ModelsContext, prefix: string): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: `${prefix}/v1/models`,
    summary: 'Every model this key can call now.',
    query: MODELS_QUERY,
    answers: { 200: { description: 'The models, in the shape both SDKs read.', schema: MODELS } },
    handle: async ({ key, query }, request, response) => {
      const { client_version: codex, ...asked } = readModelsQuery(query);
      const show = callableModels(gateway, prefix, key, request);
      const { items: data, hasMore } = pageOfModels(gateway.catalog, asked, show);
      sendJson(response, 200, {
        object: 'list',
        data,
        first_id: data.at(0)?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
        has_more: hasMore,
        ...(codex === undefined ? {} : { models: NOTHING_FOR_CODEX }),
      });
    },
  };
}

/**
 * The empty `models` member, because Codex cannot read a list without it. An entry would replace Codex's own data about the model, such as
 * its instructions, and the gateway does not have those.
 */
const NOTHING_FOR_CODEX: readonly object[] = [];

/** The date that stands for an unknown release date, because both SDKs require the field. */
const UNKNOWN_DATE = '1970-01-01';

/** Counts the upstreams that a call would try now: those not ejected after failures, or all of the model's if all are ejected. */
function available(entries: Model['entries'], health: UpstreamHealth): number {
  const nowMs = health.now();
  const isIn = ({ upstream }: Model['entries'][number]) =>
    health.upstream(upstream.name).ejection.state(nowMs) === 'in';
  return entries.filter(isIn).length || entries.length;
}

/**
 * Shows a model: the fields that both SDKs read, then the gateway's own. Prices are the customer's at the most expensive upstream, so no
 * call costs more than shown.
 */
function toJson(model: Model, entries: Model['entries'], health: UpstreamHealth, priceOf: PriceOf) {
  const price = maxPrice(entries.map((entry) => priceOf(entry.model)));
  const uses = toolUses(entries);
  const dates = entries.flatMap((entry) => entry.model.created ?? []).sort();
  const created = new Date(dates[0] ?? UNKNOWN_DATE);
  return {
    id: model.name,
    object: 'model',
    type: 'model',
    created: created.getTime() / 1_000,
    created_at: created.toISOString(),
    display_name: model.name,
    owned_by: 'tollgate',
    aliases: model.aliases,
    context: Math.max(...entries.map((entry) => entry.model.context)),
    max_output: Math.max(...entries.map((entry) => entry.model.maxOutput)),
    upstreams: available(entries, health),
    facts: entries.map(({ upstream, model: entry }) => showFacts(upstream, entry)),
    price_per_million: inSnakeCase(price.rates),
    ...(isEmpty(price.pieces) ? {} : { price_per_piece: inSnakeCase(price.pieces) }),
    ...(isEmpty(uses) ? {} : { tool_uses: inSnakeCase(uses) }),
    ...(isEmpty(price.variants) ? {} : { price_variants: mapValues(price.variants, inSnakeCase) }),
  };
}

/** Returns how often a call that sets no limit may use the vendor's own tools, at the upstream with the highest limits. */
function toolUses(entries: Model['entries']): Readonly<Record<string, number>> {
  const uses: Record<string, number> = {};
  for (const { model } of entries)
    for (const meter of LIMITED_METERS)
      if (model.price.pieces.has(meter)) uses[meter] = Math.max(uses[meter] ?? 0, model.toolUses?.get(meter) ?? 1);
  return uses;
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0;
}

/** Renames members such as `cacheWrite1h` to `cache_write_1h`. */
function inSnakeCase<T>(values: Readonly<Record<string, T>>): Record<string, T> {
  const named = (name: string) => name.replace(/[A-Z]|(?<=[a-z])\d/g, (each) => `_${each.toLowerCase()}`);
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [named(name), value]));
}

const PER_MILLION = {
  input: shape.usd,
  output: shape.usd,
  cache_write: shape.usd,
  cache_write_1h: shape.usd,
  cache_read: shape.usd,
};
const RATES = { ...object(PER_MILLION), additionalProperties: shape.usd };

export const MODEL = objectWith(
  {
    id: shape.text,
    object: oneOf('model'),
    type: oneOf('model'),
    created: shape.integer,
    created_at: shape.time,
    display_name: shape.text,
    owned_by: shape.text,
    aliases: shape.texts,
    context: shape.integer,
    max_output: shape.integer,
    upstreams: shape.integer,
    facts: listOf(FACTS),
    price_per_million: RATES,
  },
  { price_per_piece: mapOf(shape.usd), tool_uses: mapOf(shape.integer), price_variants: mapOf(RATES) },
);

const MODELS = objectWith(
  {
    object: oneOf('list'),
    data: listOf(MODEL),
    first_id: orNull(shape.text),
    last_id: orNull(shape.text),
    has_more: shape.yes,
  },
  {
    models: { ...listOf({ type: 'object' }), maxItems: 0, description: 'For Codex, which asks with `client_version`.' },
  },
);

function showModelRoute(gateway: ModelsContext, prefix: (typeof PATH_PREFIXES)[number]): Route {
  return keyRoute(`GET ${prefix}/v1/models/{id...}`, {
    summary: 'One model; its name may contain slashes.',
    answers: { 200: { description: 'The model.', schema: MODEL } },
    errors: ['MODEL_AMBIGUOUS'],
    handle: async ({ params, key }, request) => {
      const lookup = gateway.catalog.find(params.id);
      if ('ambiguous' in lookup) throw fail('MODEL_AMBIGUOUS', { details: { models: lookup.ambiguous } });
      const shown = 'found' in lookup ? callableModels(gateway, prefix, key, request)(lookup.found) : undefined;
      if (shown === undefined)
        throw fail('NOT_FOUND', { message: 'The model does not exist. GET /v1/models lists all models.' });
      return shown;
    },
  });
}
