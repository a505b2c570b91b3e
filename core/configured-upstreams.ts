import { buildCatalog, type Catalog, CatalogProblem, type ModelEntry, type Upstream } from './catalog';
import { hint, type LocatedProblem, withHint } from './configuration-problems';
import type { GatewaySettings, ModelSettings, ServiceEndpointSettings } from './configuration-schema';
import { readCredential } from './credentials';
import { formatUsd, MAX_AMOUNT_E8, parseUsd } from './money';
import { mostCost, type Price } from './price';
import { compileCheck, parseDuration } from './settings';
import { adapterNames, findAdapter, type UpstreamAdapter } from './upstream';

/** The upstreams with their adapters, credentials, models and prices. */
export function readUpstreams(
  gateway: GatewaySettings,
  folder: string,
  env: NodeJS.ProcessEnv,
  problems: LocatedProblem[],
): Upstream[] {
  return Object.entries(gateway.serviceEndpoints).flatMap(([name, settings]) => {
    const path = ['serviceEndpoints', name];
    if (!URL.canParse(settings.url)) {
      problems.push({ path: [...path, 'url'], message: 'is not a valid address' });
      return [];
    }
    const adapters = readAdapters(path, settings, problems);
    const credential = readCredential(settings.credential, folder, env);
    if ('problem' in credential)
      problems.push({ path: [...path, 'credential', credential.at], message: credential.problem });
    const upstream: Upstream = {
      name,
      url: new URL(settings.url),
      adapters,
      adapterSettings: settings.adapterSettings ?? {},
      credential: 'value' in credential ? credential.value : undefined,
      disabled: 'missing' in credential ? credential.missing : undefined,
      tier: settings.tier,
      weight: settings.weight,
      maxConcurrent: settings.maxConcurrent,
      allowPrivate: settings.allowPrivate,
      timeouts: readTimeouts(path, settings, problems),
      prefill: settings.prefill,
      streamUsage: settings.streamUsage,
      models: Object.entries(settings.models).map(([model, each]) =>
        readModel([...path, 'models', model], model, each, problems),
      ),
    };
    return [upstream];
  });
}

function readAdapters(
  path: readonly string[],
  settings: ServiceEndpointSettings,
  problems: LocatedProblem[],
): UpstreamAdapter[] {
  return [settings.adapter].flat().flatMap((name) => {
    const adapter = findAdapter(name);
    if (adapter === undefined) {
      problems.push({
        path: [...path, 'adapter'],
        message: `there is no adapter "${name}"${hint(name, adapterNames())}`,
      });
      return [];
    }
    const checked = compileCheck<unknown>(adapter.schema)(settings.adapterSettings ?? {});
    if ('problems' in checked) {
      for (const problem of checked.problems)
        problems.push({ ...withHint(problem), path: [...path, 'adapterSettings', ...problem.path] });
    }
    return [adapter];
  });
}

/** Connecting and waiting for headers together take at most this long; spec section 8. */
const LONGEST_CONNECTION_MS = 120_000;

function readTimeouts(
  path: readonly string[],
  settings: ServiceEndpointSettings,
  problems: LocatedProblem[],
): Upstream['timeouts'] {
  const { connect, headers, firstToken, idle } = settings.timeouts;
  const connectMs = parseDuration(connect);
  const headersMs = parseDuration(headers);
  for (const [name, value] of Object.entries({ connect: connectMs, headers: headersMs })) {
    if (value > LONGEST_CONNECTION_MS)
      problems.push({ path: [...path, 'timeouts', name], message: 'expected at most 120s' });
  }
  return {
    connectMs,
    headersMs,
    firstTokenMs: firstToken === undefined ? undefined : parseDuration(firstToken),
    idleMs: parseDuration(idle),
  };
}

function readModel(
  path: readonly string[],
  name: string,
  settings: ModelSettings,
  problems: LocatedProblem[],
): ModelEntry {
  const { aliases, context, maxOutput } = settings;
  const estimatedMaxTokens = settings.estimatedMaxTokens ?? Math.min(4_096, maxOutput);
  if (estimatedMaxTokens > maxOutput)
    problems.push({ path: [...path, 'estimatedMaxTokens'], message: `expected at most maxOutput (${maxOutput})` });
  const price = readPrice([...path, 'price'], settings.price, problems);
  const most = mostCost({ context, maxOutput }, price);
  if (most > MAX_AMOUNT_E8) {
    const message = `one call could cost USD ${formatUsd(most)}, more than the ledger can count (USD ${formatUsd(MAX_AMOUNT_E8)})`;
    problems.push({ path: [...path, 'price'], message });
  }
  return { name, aliases, context, maxOutput, estimatedMaxTokens, price };
}

function readPrice(path: readonly string[], settings: ModelSettings['price'], problems: LocatedProblem[]): Price {
  const read = (part: string, value: number | string | undefined, otherwise: bigint): bigint => {
    if (value === undefined) return otherwise;
    try {
      return parseUsd(decimalText(value));
    } catch (error) {
      problems.push({
        path: [...path, ...part.split('.')],
        message: error instanceof Error ? error.message : String(error),
      });
      return 0n;
    }
  };
  const tier = (prices: Omit<ModelSettings['price'], 'above'>, prefix: string) => {
    const inputE8 = read(`${prefix}input`, prices.input, 0n);
    const cacheWriteE8 = read(`${prefix}cacheWrite`, prices.cacheWrite, inputE8);
    return {
      inputE8,
      outputE8: read(`${prefix}output`, prices.output, 0n),
      cacheWriteE8,
      cacheWrite1hE8: read(`${prefix}cacheWrite1h`, prices.cacheWrite1h, cacheWriteE8),
      cacheReadE8: read(`${prefix}cacheRead`, prices.cacheRead, inputE8),
    };
  };
  const { above } = settings;
  return {
    ...tier(settings, ''),
    above: above === undefined ? undefined : { ...tier(above, 'above.'), tokens: above.tokens },
  };
}

/** YAML reads 0.0000005 as a number that JavaScript writes as 5e-7: every digit is written out, none is rounded away. */
function decimalText(value: number | string): string {
  const text = String(value);
  const [, whole, fraction = '', exponent] = /^(\d)(?:\.(\d+))?e-(\d+)$/.exec(text) ?? [];
  if (typeof value === 'string' || whole === undefined) return text;
  return `0.${'0'.repeat(Number(exponent) - 1)}${whole}${fraction}`;
}

/** undefined when a name makes two models of one upstream the same; the problem is added. */
export function readCatalog(upstreams: readonly Upstream[], problems: LocatedProblem[]): Catalog | undefined {
  try {
    return buildCatalog(upstreams);
  } catch (error) {
    if (!(error instanceof CatalogProblem)) throw error;
    problems.push({ path: ['serviceEndpoints', error.upstream, 'models', error.model], message: error.message });
    return undefined;
  }
}
