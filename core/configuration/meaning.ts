import type { ModelEntry, Upstream } from '../catalog/catalog';
import type { Price, RateCard } from '../catalog/price';
import { TOKEN_METERS, type TokenMeter } from '../catalog/usage';
import { formatUsd } from '../money';
import { planOf } from '../rollouts/plan';
import type { Rollout } from '../rollouts/rollout';
import type { Configuration } from './configuration';
import { FALLBACK_METER } from './prices';

/**
 * The content of a configuration, fact by fact, independent of its spelling: `price acme/large input` -> `3.00000000`. A value
 * with a variable is shown unreplaced, as `${NAME}`, because the environment may hold a secret and is not part of the
 * configuration.
 */
export type Meaning = ReadonlyMap<string, string>;

export interface MeaningChange {
  readonly what: string;
  /** null: the fact was absent. */
  readonly before: string | null;
  readonly after: string | null;
}

export function meaningOf({ gateway, written, pipelines, catalog, sections, rollouts }: Configuration): Meaning {
  return new Map([
    ...facts('listener public', gateway.https ?? gateway.http, memberOf(written, gateway.https ? 'https' : 'http')),
    ...facts('listener admin', gateway.admin, memberOf(written, 'admin')),
    ...pipelines.flatMap((each) => routesOf(each, memberOf(written, 'apiEndpoints'))),
    ...pipelines.flatMap(({ name, steps }) => [
      [`pipeline ${name}`, steps.map(({ policy }) => policy.name).join(', ')] as const,
      ...steps.flatMap(({ policy, settings }, index) => {
        const place = ['pipelines', name, 'policies', index, policy.name, 0, 'action'];
        return facts(`pipeline ${name} ${policy.name}`, settings, memberOf(written, ...place));
      }),
    ]),
    ...catalog.models.map(({ name, entries }) => {
      const candidates = entries.filter(({ upstream }) => upstream.disabled === undefined);
      return [
        `candidates ${name}`,
        candidates.map(({ upstream, model }) => `${upstream.name}/${model.name}`).join(', '),
      ] as const;
    }),
    ...catalog.upstreams.flatMap((each) => upstreamFacts(each, memberOf(written, 'serviceEndpoints', each.name))),
    ...facts('customerPrices', gateway.customerPrices, memberOf(written, 'customerPrices')),
    ...[...sections].flatMap(([name, value]) => (name === ROLLOUTS ? [] : facts(name, value, memberOf(written, name)))),
    ...rollouts.flatMap((rollout) => rolloutFacts(rollout, memberOf(written, ROLLOUTS, rollout.name))),
  ]);
}

/** The section whose facts are the plans that it describes. */
const ROLLOUTS = 'rollouts';

/** Returns the facts that were added, removed or changed, in their order. */
export function changesBetween(before: Meaning, after: Meaning): MeaningChange[] {
  const all = new Set([...before.keys(), ...after.keys()]);
  return [...all]
    .filter((what) => before.get(what) !== after.get(what))
    .map((what) => ({ what, before: before.get(what) ?? null, after: after.get(what) ?? null }));
}

type Fact = readonly [string, string];

function routesOf({ name, endpoints }: Configuration['pipelines'][number], written: unknown): Fact[] {
  return endpoints.flatMap(({ name: endpoint, host = '', paths, methods = ['*'] }) => {
    const of = (...place: readonly (string | number)[]) => memberOf(written, endpoint, ...place);
    const shownHost = shown(host, of('host'));
    return paths.flatMap((path, at) =>
      methods.map((method, index): Fact => {
        const shownMethod = shown(method, of('methods', index));
        return [`route ${shownMethod} ${shownHost}${shown(path, of('paths', at))}`, name];
      }),
    );
  });
}

function upstreamFacts(upstream: Upstream, written: unknown): Fact[] {
  const { name, url, adapters, adapterSettings, tier, weight, allowPrivate, streamUsage, webSocket } = upstream;
  const { maxConcurrent, stopsOnCancel, freeMembers, ignoreUsage, traceContext, unpricedTools } = upstream;
  const what = `upstream ${name}`;
  const of = (...place: readonly string[]) => memberOf(written, ...place);
  const names = adapters.map((each) => each.name);
  return [
    [`${what} url`, shown(url.href, of('url'))],
    ...facts(`${what} adapter`, names, [of('adapter')].flat()),
    ...facts(`${what} adapterSettings`, adapterSettings, of('adapterSettings')),
    // These facts show the credential's place and presence, which affect routing, and never its value.
    ...facts(`${what} credential`, of('credential'), of('credential')),
    ...facts(`${what} credentials`, of('credentials'), of('credentials')),
    [`${what} state`, upstream.disabled === undefined ? 'enabled' : 'disabled'],
    ...facts(
      what,
      {
        tier,
        weight,
        maxConcurrent,
        allowPrivate,
        streamUsage,
        webSocket,
        stopsOnCancel,
        traceContext,
        unpricedTools,
      },
      written,
    ),
    ...facts(`${what} reporting`, of('reporting'), of('reporting')),
    ...(upstream.versions === undefined ? [] : facts(`${what} versions`, [...upstream.versions], of('versions'))),
    ...facts(`${what} freeMembers`, [...(freeMembers ?? [])], of('freeMembers')),
    ...facts(`${what} ignoreUsage`, [...ignoreUsage], of('ignoreUsage')),
    ...Object.entries(upstream.timeouts).flatMap(([timeout, ms]) =>
      facts(`${what} timeouts ${timeout}`, ms, of('timeouts', timeout.slice(0, -2))),
    ),
    ...upstream.models.flatMap((each) => modelFacts(`${name}/${each.name}`, each, of('models', each.name))),
  ];
}

function modelFacts(name: string, model: ModelEntry, written: unknown): Fact[] {
  const { aliases, context, maxOutput, protocols, estimatedMaxTokens, price } = model;
  const { bounds, tokenizerFactor, normalizes, toolOverheadTokens } = model;
  const { most, ...byDetail } = model.imageTokens;
  const imageTokens = Object.values(byDetail).every((tokens) => tokens === most) ? most : byDetail;
  const estimate = shown(estimatedMaxTokens, memberOf(written, 'estimatedMaxTokens'), memberOf(written, 'maxOutput'));
  return [
    ...facts(`model ${name}`, { aliases, context, maxOutput, protocols }, written),
    ...facts(`model ${name}`, { bounds, tokenizerFactor, normalizes, toolOverheadTokens }, written),
    ...facts(`model ${name} imageTokens`, imageTokens, memberOf(written, 'imageTokens')),
    ...facts(`model ${name} toolUses`, Object.fromEntries(model.toolUses ?? []), memberOf(written, 'toolUses')),
    [`model ${name} estimatedMaxTokens`, estimate],
    ...priceFacts(`price ${name}`, price, memberOf(written, 'price')),
    ...facts(`model ${name} mayAnswerWith`, memberOf(written, 'mayAnswerWith'), undefined),
  ];
}

/**
 * Returns the facts of a rollout's plan. If the rollout has variables it returns the raw settings, because the plan's sentences
 * would show their values.
 */
function rolloutFacts(rollout: Rollout, written: unknown): Fact[] {
  const what = `rollout ${rollout.name}`;
  if (JSON.stringify(written)?.includes('${')) return facts(what, written, written);
  return planOf(rollout).map(([about, says]) => [`${what} ${about}`, says]);
}

/** Returns the facts of a price: USD per million tokens, then pieces and variants. */
function priceFacts(what: string, price: Price, written: unknown): Fact[] {
  const { unpriced, pieces, variants } = price;
  return [
    ...cardFacts(what, price, unpriced, written),
    ...[...pieces].map(([meter, eachE8]): Fact => {
      return [`${what} pieces ${meter}`, shown(formatUsd(eachE8), memberOf(written, 'pieces', meter))];
    }),
    ...[...variants].flatMap(([key, card]) =>
      cardFacts(`${what} ${key.split('\n').filter(Boolean).join(' ')}`, card, unpriced, undefined),
    ),
  ];
}

function cardFacts(what: string, { rates, above }: RateCard, unpriced: Price['unpriced'], written: unknown): Fact[] {
  const parts = TOKEN_METERS.filter((meter) => !unpriced.has(meter)).map((meter): Fact => {
    const places = placesOf(meter).map((place) => memberOf(written, place));
    return [`${what} ${meter}`, shown(formatUsd(rates[meter]), ...places)];
  });
  if (above === undefined) return parts;
  const writtenAbove = memberOf(written, 'above');
  return [
    ...parts,
    ...facts(`${what} above tokens`, above.tokens, memberOf(writtenAbove, 'tokens')),
    ...cardFacts(`${what} above`, { rates: above.rates, above: undefined }, unpriced, writtenAbove),
  ];
}

/** Returns the members that may hold a meter's rate: its own, then those that it falls back to. */
function placesOf(meter: TokenMeter): readonly TokenMeter[] {
  const fallback = FALLBACK_METER[meter];
  return fallback === undefined ? [meter] : [meter, ...placesOf(fallback)];
}

/** Returns a fact for every value inside a value, by its path. */
function facts(what: string, value: unknown, written: unknown): Fact[] {
  if (value === undefined) return [];
  if (value === null || typeof value !== 'object') return [[what, shown(value, written)]];
  if (Array.isArray(value) && value.every((each) => typeof each !== 'object'))
    return [[what, value.map((each, index) => shown(each, memberOf(written, index))).join(', ')]];
  return Object.entries(value).flatMap(([name, each]) => facts(`${what} ${name}`, each, memberOf(written, name)));
}

/** Returns the value, or its written form if that has a variable. The first defined place counts, because the value was taken from there. */
function shown(value: unknown, ...places: readonly unknown[]): string {
  const written = places.find((each) => each !== undefined);
  return typeof written === 'string' && written.includes('${') ? written : String(value);
}

function memberOf(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (within, part) =>
      within !== null && typeof within === 'object' ? (within as Record<string, unknown>)[String(part)] : undefined,
    value,
  );
}
