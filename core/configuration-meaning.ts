import type { Upstream } from './catalog';
import type { Configuration } from './configuration';
import { formatUsd } from './money';
import type { Price } from './price';
import { planOf } from './rollout-plan';

/** What a configuration says, fact by fact, however it is written: `price acme/large input` -> `3.00000000`. */
export type Meaning = ReadonlyMap<string, string>;

export interface MeaningChange {
  readonly what: string;
  /** null: it was not said. */
  readonly before: string | null;
  readonly after: string | null;
}

export function meaningOf({ gateway, pipelines, catalog, sections, rollouts }: Configuration): Meaning {
  return new Map([
    ...facts('listener public', gateway.http),
    ...facts('listener admin', gateway.admin),
    ...pipelines.flatMap(routesOf),
    ...pipelines.flatMap(({ name, steps }) => [
      [`pipeline ${name}`, steps.map(({ policy }) => policy.name).join(', ')] as const,
      ...steps.flatMap(({ policy, settings }) => facts(`pipeline ${name} ${policy.name}`, settings)),
    ]),
    ...catalog.models.map(({ name, entries }) => {
      const candidates = entries.filter(({ upstream }) => upstream.disabled === undefined);
      return [
        `candidates ${name}`,
        candidates.map(({ upstream, model }) => `${upstream.name}/${model.name}`).join(', '),
      ] as const;
    }),
    ...catalog.upstreams.flatMap(upstreamFacts),
    ...[...sections].flatMap(([name, value]) => (name === ROLLOUTS ? [] : facts(name, value))),
    ...rollouts.flatMap((rollout) =>
      planOf(rollout).map(([what, says]): Fact => [`rollout ${rollout.name} ${what}`, says]),
    ),
  ]);
}

/** Its words are said as the plan they make. */
const ROLLOUTS = 'rollouts';

/** What one says and the other does not, or otherwise; in the order of the facts. */
export function changesBetween(before: Meaning, after: Meaning): MeaningChange[] {
  const all = new Set([...before.keys(), ...after.keys()]);
  return [...all]
    .filter((what) => before.get(what) !== after.get(what))
    .map((what) => ({ what, before: before.get(what) ?? null, after: after.get(what) ?? null }));
}

type Fact = readonly [string, string];

function routesOf({ name, endpoints }: Configuration['pipelines'][number]): Fact[] {
  return endpoints.flatMap(({ host, paths, methods }) =>
    paths.flatMap((path) => (methods ?? ['*']).map((method): Fact => [`route ${method} ${host ?? ''}${path}`, name])),
  );
}

function upstreamFacts(upstream: Upstream): Fact[] {
  const { name, url, adapters, adapterSettings, tier, weight, allowPrivate, timeouts, models } = upstream;
  return [
    [`upstream ${name} url`, url.href],
    [`upstream ${name} adapter`, adapters.map((each) => each.name).join(', ')],
    ...facts(`upstream ${name} adapterSettings`, adapterSettings),
    // The credential itself is not shown: whether there is one is what routing depends on.
    [`upstream ${name} state`, upstream.disabled ?? 'enabled'],
    ...facts(`upstream ${name}`, { tier, weight, allowPrivate, timeouts }),
    ...facts(`upstream ${name}`, { prefill: upstream.prefill, streamUsage: upstream.streamUsage }),
    ...models.flatMap((model) => {
      const { aliases, context, maxOutput, estimatedMaxTokens, price } = model;
      return [
        ...facts(`model ${name}/${model.name}`, {
          aliases: aliases.join(', '),
          context,
          maxOutput,
          estimatedMaxTokens,
        }),
        ...priceFacts(`price ${name}/${model.name}`, price),
      ];
    }),
  ];
}

/** USD per million tokens. */
function priceFacts(what: string, { above, ...price }: Price): Fact[] {
  const parts = Object.entries(price).map(
    ([part, amountE8]): Fact => [`${what} ${part.slice(0, -2)}`, formatUsd(amountE8)],
  );
  if (above === undefined) return parts;
  const { tokens, ...dearer } = above;
  return [
    ...parts,
    [`${what} above tokens`, String(tokens)],
    ...priceFacts(`${what} above`, { ...dearer, above: undefined }),
  ];
}

/** Every value within a value, by its path. */
function facts(what: string, value: unknown): Fact[] {
  if (value === undefined) return [];
  if (value === null || typeof value !== 'object') return [[what, String(value)]];
  if (Array.isArray(value) && value.every((each) => typeof each !== 'object')) return [[what, value.join(', ')]];
  return Object.entries(value).flatMap(([name, each]) => facts(`${what} ${name}`, each));
}
