import { memberOf } from '../base/json-values';
import { formatUsd, parseUsd } from '../base/money';
import type { Configuration } from './configuration';
import { decimalText } from './prices';
import type { ModelSettings, ServiceEndpointSettings } from './schema';

/**
 * The values of a configuration, by the names of what they set: `price acme/large input` -> `3.00000000`. A value with a variable stays
 * unreplaced, as `${NAME}`. The environment may hold a secret and is not part of the configuration.
 */
export type ConfigurationFacts = ReadonlyMap<string, string>;

export interface FactChange {
  readonly what: string;
  /** The value before the change; null if there was none. */
  readonly before: string | null;
  readonly after: string | null;
}

export function configurationFacts({
  gateway,
  written,
  pipelines,
  catalog,
  sections,
}: Configuration): ConfigurationFacts {
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
    ...catalog.upstreams.map(
      ({ name, disabled }): Fact => [`upstream ${name} state`, disabled === undefined ? 'enabled' : 'disabled'],
    ),
    ...Object.entries(gateway.serviceEndpoints).flatMap(([name, settings]) =>
      upstreamFacts(name, settings, memberOf(written, 'serviceEndpoints', name)),
    ),
    ...facts('customerPrices', gateway.customerPrices, memberOf(written, 'customerPrices')),
    ...[...sections].flatMap(([name, value]) => facts(name, value, memberOf(written, name))),
  ]);
}

/** Returns the settings that were added, removed or changed between two configurations, in the configuration's order. */
export function changesBetween(before: ConfigurationFacts, after: ConfigurationFacts): FactChange[] {
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

function upstreamFacts(name: string, { models, ...own }: ServiceEndpointSettings, written: unknown): Fact[] {
  return [
    ...facts(`upstream ${name}`, own, written),
    ...Object.entries(models).flatMap(([model, { price, ...rest }]) => {
      const its = memberOf(written, 'models', model);
      return [
        ...facts(`model ${name}/${model}`, rest, its),
        ...facts(`price ${name}/${model}`, inUsd(price), memberOf(its, 'price')),
      ];
    }),
  ];
}

/** The members of a price that are no amounts. */
const NOT_AMOUNTS: ReadonlySet<string> = new Set(['tokens', 'source', 'date']);

/** Returns a price with all its amounts in the same decimal form, so that 3 and 3.00 are equal. */
function inUsd(price: ModelSettings['price']): unknown {
  return JSON.parse(JSON.stringify(price), (name, value: unknown) =>
    NOT_AMOUNTS.has(name) || (typeof value !== 'number' && typeof value !== 'string')
      ? value
      : formatUsd(parseUsd(decimalText(value))),
  );
}

/** Returns the simple values inside a nested value as text, each with a name that contains its path. */
function facts(what: string, value: unknown, written: unknown): Fact[] {
  if (value === undefined) return [];
  if (value === null || typeof value !== 'object') return [[what, shown(value, written)]];
  if (Array.isArray(value) && value.every((each) => typeof each !== 'object'))
    return [[what, value.map((each, index) => shown(each, memberOf(written, index))).join(', ')]];
  return Object.entries(value).flatMap(([name, each]) => facts(`${what} ${name}`, each, memberOf(written, name)));
}

/** Returns the value as text. If the file's text for it contains a variable `${NAME}`, returns that text instead. */
function shown(value: unknown, written: unknown): string {
  return typeof written === 'string' && written.includes('${') ? written : String(value);
}
